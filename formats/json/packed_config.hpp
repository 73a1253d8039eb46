// The config.json of a model directory that holds a blob in place of raw experts. An engine that
// knows no blobs would load such a directory without its experts. Therefore the config names a
// quantization method that no engine has, and the checkpoint's own method beside it:
//     "quantization_config": {"quant_method": "mxfp4_repack", "mxfp4_repack_quant_method": "mxfp4"}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mxfp4 {

inline constexpr std::string_view kPackedQuantMethod = "mxfp4_repack";
inline constexpr std::string_view kOwnQuantMethodKey = "mxfp4_repack_quant_method";

// Finds the object that says how a model is quantized, where engines look for it: the whole config
// if it has a `quant_method`, else `quantization_config`, `text_config.quantization_config` or
// `compression_config`. Null if there is none. Sets `where` to the object's key path.
[[nodiscard]] nlohmann::ordered_json* find_quantization(nlohmann::ordered_json& config,
                                                        std::string& where);

// `text`, a config.json, changed to name kPackedQuantMethod. A config without a quantization gets
// one; a config that names this method already is not changed. Throws Error::input unless `text` is
// a JSON object.
[[nodiscard]] std::string packed_config_text(std::string_view text);

// Puts the checkpoint's own method back into a config that packed_config_text made; changes no
// other config. Throws Error::input naming the key.
void restore_quantization(nlohmann::ordered_json& config);

}  // namespace mxfp4
