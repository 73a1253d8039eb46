// The modules that a quantization leaves out, as far as they are routed experts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

// Reads the list of `quantization`, the quantization_config object, in the words of its
// quant_method: Quark's exclude, the ignore of compressed-tensors, AutoRound's extra_config with 16
// bits. Other methods have none that the engine asks of experts (vLLM 0.33.0: quark/utils.py,
// should_ignore_layer; compressed_tensors_moe.py, get_moe_method; inc/inc.py, get_quant_method).
// Quark and compressed-tensors compare names, as `renames` makes them.
[[nodiscard]] Exclusions read_exclusions(const nlohmann::ordered_json& quantization,
                                         std::span<const Rename> renames);

}  // namespace mxfp4
