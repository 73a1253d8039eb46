// Style detection, and the way from a list of tensor names to a model's layers.
#pragma once

#include <vector>

#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// Recognises the style from `config` (may be null) and the names, finds every MoE layer, and checks
// names, dtypes and shapes against each other and against the config. All layers have the same
// H and I except in `loaded` inputs, and the same E unless the config gives draft stages their own.
// Throws Error::input naming file and tensor or key, Error::usage when nothing says the family of a
// `loaded` input.
[[nodiscard]] ModelLayers find_expert_layers(const std::vector<NamedTensor>& tensors,
                                             const ModelConfig* config, const FindOptions& options);

}  // namespace mxfp4
