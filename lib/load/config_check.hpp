// What config.json says held against what the tensors are. The tensors decide; a config that says
// otherwise belongs to another model or to a broken download.
#pragma once

#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

// Hidden size, intermediate size and number of experts. `witness` is a tensor the sizes came from.
// Throws Error::input naming the config's file and key.
void check_sizes(const ModelConfig& config, const LayerDims& dims, const NamedTensor& witness);

// That no layer with experts is missing or beyond the model. `layers` ascends by index; `rest` are
// the tensors that are not ours, whose names tell dense and unquantized layers from absent ones.
void check_layers(const ModelConfig& config, const StyleRow& row,
                  const std::vector<ExpertLayer>& layers, const std::vector<NamedTensor>& tensors,
                  const std::vector<size_t>& rest, std::vector<std::string>& warnings);

// The rule that a quantization config has for a module; null when it has none.
[[nodiscard]] const QuantRule* find_rule(const QuantMethod& quant, std::string_view module);

// Shell-style match of a whole name: '*', '?' and [...] sets, as Python's fnmatch.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace mxfp4
