// Models whose experts are not MXFP4, or that have none, recognised by the names and dtypes of
// their tensors: for the message when no expert layer is found.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// "the experts are quantized as NVFP4; this program repacks MXFP4 experts only", or another such
// sentence; empty if the tensors tell nothing. Source of the names: what the checkpoints' own tools
// write (AutoAWQ, GPTQModel, ModelOpt, DeepSeek's FP8).
[[nodiscard]] std::optional<std::string_view> describe_other_model(
    const std::vector<NamedTensor>& tensors);

// Whether one of the tensors is an expert's, by its name.
[[nodiscard]] bool has_experts(const std::vector<NamedTensor>& tensors);

}  // namespace mxfp4
