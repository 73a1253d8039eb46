// Tensors in the loaded form may say which checkpoint they came from; unpack writes that.
#pragma once

#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// The attribute that says which checkpoint the tensors came from: JSON, which this room does
// not read.
inline constexpr std::string_view kCheckpointAttribute = "checkpoint";

// Lets `model`, in the loaded form, follow the rules of the checkpoint that its tensors came from:
// loader, activation, the engine's path of each layer. Throws Error::input for a style
// that has no such loader, and for a slice that does not hold a layer.
void follow_origin(ModelLayers& model, const ModelConfig* config, const LoadedOrigin& origin);

}  // namespace mxfp4
