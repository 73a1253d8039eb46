// Which parallel size to take where the asked one cannot be cut from a checkpoint; each proven by
// deciding again.
//
// Usage: sizes_that_work(request, conversion, &checkpoint).values is {2, 4} for 3 ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/conversion/decide.hpp"

namespace mxfp4 {

// One of the sizes of a deployment, as it is told.
using ParallelSize = std::optional<int64_t> DeploymentFacts::*;

struct WorkingSizes {
  ParallelSize size = &DeploymentFacts::tp_size;
  std::vector<int64_t> values{};  // ascending
};

// Values of one size with which nothing refuses the conversion: up to two below the asked one and two
// above. The size is the first of tensor, data and prefill context that is above 1 and has such
// values. None where something else refuses, or where only data can tell.
[[nodiscard]] WorkingSizes sizes_that_work(const ConversionRequest& request,
                                           const Conversion& conversion,
                                           const OpenedCheckpoint* checkpoint);

}  // namespace mxfp4
