// Decides which quantization configs mean MXFP4 experts, with one function for each quant_method.
// Errors name the key under `quantization_config` and its value.
#pragma once

#include "formats/config/quantization_members.hpp"
#include "lib/core/model_config.hpp"

namespace mxfp4 {

// Throws Error::input.
[[nodiscard]] Quantization read_quantization(const QuantizationJson& text);

}  // namespace mxfp4
