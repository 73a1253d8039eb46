// The parallel sizes of a deployment in words.
#pragma once

#include <string>

#include "lib/core/deployment.hpp"

namespace mxfp4 {

// "tp 2, dp 1, pcp 1", then ", expert parallel" where it is on.
[[nodiscard]] std::string parallel_text(const ParallelConfig& parallel);

}  // namespace mxfp4
