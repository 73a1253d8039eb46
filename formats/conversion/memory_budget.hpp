// Whether convert, unpack or verify --against fit the memory that was asked for (--memory).
#pragma once

#include <cstdint>

#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// Bytes of a job that runs under every budget.
inline constexpr int64_t kLeastMemory = int64_t{64} << 20;

// Throws Error::usage when the dearest job, of `job_cost` bytes, exceeds the budget that was asked
// for; under a default budget it may run alone. To be called before anything is written.
void require_memory(const RunLimits& limits, int64_t job_cost);

}  // namespace mxfp4
