// Decides which quantization configs mean MXFP4 experts, with one function for each quant_method.
// Errors name the key under `quantization_config` and its value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

struct QuantizationJson {
  const nlohmann::ordered_json* quantization;  // the quantization_config object, keys in file order
  const nlohmann::ordered_json* model;  // the whole config; null if there is only `quantization`
  std::string_view model_type;
  std::string where;  // key path of the object, "quantization_config"
};

// Throws Error::input.
[[nodiscard]] Quantization read_quantization(const QuantizationJson& text);

}  // namespace mxfp4
