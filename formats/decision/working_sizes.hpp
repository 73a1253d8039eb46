// Finds parallel sizes that work if a checkpoint cannot be cut into the requested one. Each is
// proven by deciding again.
//
// Usage: sizes_that_work(request, conversion, &checkpoint).values is {2, 4} for 3 ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/decision/decide.hpp"

namespace mxfp4 {

// One of the sizes that a deployment can be given.
using ParallelSize = std::optional<int64_t> DeploymentFacts::*;

struct WorkingSizes {
  ParallelSize size = &DeploymentFacts::tp_size;
  std::vector<int64_t> values{};  // ascending
};

// Values of one size with which the conversion is not refused: up to two below the requested value
// and two above it. The size is the first of tensor, data and prefill context parallel size that is
// above 1 and has such values. No values if the refusal has another reason, or if only data can
// decide.
[[nodiscard]] WorkingSizes sizes_that_work(const ConversionRequest& request,
                                           const Conversion& conversion,
                                           const OpenedCheckpoint* checkpoint);

}  // namespace mxfp4
