// Layers whose experts a config's quantization does not cover, though their tensors are there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/layer_table.hpp"

namespace mxfp4 {

// What the engine stops at: MXFP4 experts that the quantization leaves out, and exclusions that
// name experts as the model's class does not call them. `tables` are the layers with MXFP4 experts,
// `aside` those with others; `config` has a quantization.
[[nodiscard]] std::vector<std::string> left_out_warnings(const std::vector<LayerTable>& tables,
                                                         const std::vector<LayerTable>& aside,
                                                         const ModelConfig& config);

// ModelLayers::unknown_modules.
[[nodiscard]] std::set<std::string> unknown_modules_of(const std::vector<LayerTable>& tables,
                                                       const std::vector<LayerTable>& aside,
                                                       const Quantization& quantization);

// ModelLayers::unnamed_words.
[[nodiscard]] std::set<std::string> unnamed_words_of(const std::vector<LayerTable>& tables,
                                                     const Quantization& quantization);

}  // namespace mxfp4
