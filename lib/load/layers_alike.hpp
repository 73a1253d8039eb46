// Whether the layers that a checkpoint's config quantizes to MXFP4 are quantized alike.
#pragma once

#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/layer_table.hpp"

namespace mxfp4 {

// Throws Error::input where the config, which has a quantization, quantizes the layers' experts, or
// the projections of one layer, in ways that the engine or one blob cannot serve. Source: vLLM
// 0.33.0, compressed_tensors_moe.py (get_moe_method), quark_moe.py (get_moe_method_target).
void check_alike(const std::vector<LayerTable>& tables, const StyleRow& row,
                 const ModelConfig& config);

}  // namespace mxfp4
