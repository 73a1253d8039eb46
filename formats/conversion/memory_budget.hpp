// Decides whether convert, unpack or verify --against fits into the memory of --memory.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/conversion/run_limits.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/layouts/run_output.hpp"

namespace mxfp4 {

// A job of this many bytes runs under every budget.
inline constexpr int64_t kLeastMemory = int64_t{64} << 20;

// What determines the memory of a run. Every job in flight has buffers, and scratch for its
// program; jobs share the programs' tables.
struct RunMemory {
  int64_t job_bytes = 0;               // buffers of the largest job, without scratch
  std::vector<const Output*> outputs;  // whose programs run
  Direction direction;
};

// Throws Error::usage if one job exceeds the budget of --memory; under the default budget, such a
// job runs by itself. Call it before anything is written. Also builds the schedules, as far as they
// fit the budget.
void require_memory(const RunLimits& limits, const RunMemory& memory);

// How many jobs may be in flight: as many as fit into the budget, at least one.
[[nodiscard]] PipelineLimits jobs_in_flight(const RunLimits& limits, const RunMemory& memory);

}  // namespace mxfp4
