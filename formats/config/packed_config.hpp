// config.json of a model directory that holds a blob in the place of raw experts. An engine that
// knows no blobs would load such a directory without its experts, so the config names a
// quantization method that no engine has; the checkpoint's own method stands beside it:
//     "quantization_config": {"quant_method": "mxfp4_repack", "mxfp4_repack_quant_method": "mxfp4"}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mxfp4 {

inline constexpr std::string_view kPackedQuantMethod = "mxfp4_repack";
inline constexpr std::string_view kOwnQuantMethodKey = "mxfp4_repack_quant_method";

// The object that says how a model is quantized, where engines look for it: the whole config where
// that has a `quant_method`, else `quantization_config`, `text_config.quantization_config` or
// `compression_config`. Null when there is none. `where` becomes its key path.
[[nodiscard]] nlohmann::ordered_json* find_quantization(nlohmann::ordered_json& config,
                                                        std::string& where);

// The text of config.json, naming that method. A config without a quantization gets one; one that
// names the method already stays as it is. Throws Error::input for what is no JSON object.
[[nodiscard]] std::string packed_config_text(std::string_view text);

// Puts the checkpoint's own method back in a config that packed_config_text made; others stay as
// they are. Throws Error::input naming the key.
void restore_quantization(nlohmann::ordered_json& config);

}  // namespace mxfp4
