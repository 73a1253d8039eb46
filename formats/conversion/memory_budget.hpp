// Whether a conversion, its inverse or a comparison fits the memory that it may use.
#pragma once

#include <cstdint>

#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// Jobs of this size run under every budget.
inline constexpr int64_t kLeastMemory = int64_t{64} << 20;

// Throws Error::usage when one job takes more bytes than the budget that was asked for. To be called
// before anything is written.
void require_memory(const RunLimits& limits, int64_t job_cost);

}  // namespace mxfp4
