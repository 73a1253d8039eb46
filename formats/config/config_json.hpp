// Reads config.json, and decides whether its quantization is one of MXFP4 experts as the reference
// loads them (vLLM a2c8fc6657, layers/quantization/{mxfp4,fp8,quark/quark,compressed_tensors}.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

// `text` is a whole config.json, or only its quantization_config object, which has `quant_method`
// at the top. Sizes may lie under `text_config`, the quantization under `quantization_config`,
// `text_config.quantization_config` or `compression_config`. `file` is for messages. The config of
// a model directory with a blob (packed_config.hpp) is read as the checkpoint's own was. Throws
// Error::input, naming file and key, if the text is not JSON, a field has another type, or the
// quantization holds no MXFP4 experts.
//
// A config without a quantization is legal here: find_expert_layers decides.
[[nodiscard]] ModelConfig parse_model_config(std::string_view text, std::string_view file);

// What is assumed of the model's experts because of its class: one sentence each. `text` as above,
// of a config that parse_model_config has read.
[[nodiscard]] std::vector<std::string> model_class_warnings(std::string_view text);

}  // namespace mxfp4
