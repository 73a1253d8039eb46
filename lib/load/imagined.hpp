// The expert tensors that a model has by its config: an answer before the weights are there.
#pragma once

#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// Names, dtypes and shapes as the style of the config's quantization has them, for every layer that
// the config gives experts. Weights may hold what a config cannot tell: experts of another form in
// some layers, biases, names of their own. Throws Error::input naming the config's file and key if
// a size is missing, or if no style fits.
[[nodiscard]] std::vector<NamedTensor> imagine_tensors(const ModelConfig& config);

}  // namespace mxfp4
