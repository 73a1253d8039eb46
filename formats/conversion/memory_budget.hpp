// Whether convert, unpack or verify --against fit the memory that was asked for (--memory).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/conversion/run_limits.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/layouts/run_output.hpp"

namespace mxfp4 {

// Bytes of a job that runs under every budget.
inline constexpr int64_t kLeastMemory = int64_t{64} << 20;

// The memory of a run: every job in flight has buffers, and scratch for its program; the programs'
// tables are shared.
struct RunMemory {
  int64_t job_bytes = 0;               // buffers of the dearest job, without scratch
  std::vector<const Output*> outputs;  // whose programs run
  Direction direction;
};

// Throws Error::usage when one job exceeds the budget that was asked for; under a default budget it
// may run alone. To be called before anything is written. Makes the programs' schedules, but not
// those that exceed the budget.
void require_memory(const RunLimits& limits, const RunMemory& memory);

// As many jobs in flight as the budget holds, at least one.
[[nodiscard]] PipelineLimits jobs_in_flight(const RunLimits& limits, const RunMemory& memory);

}  // namespace mxfp4
