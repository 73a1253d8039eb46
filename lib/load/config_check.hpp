// Compares config.json with the tensors. The tensors decide; a config that says
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

// Arguments of check_layers beside the layers themselves.
struct LayerCheck {
  const StyleRow& row;
  const std::vector<NamedTensor>& tensors;
  const std::vector<size_t>& rest;  // not ours: their names tell dense layers from absent ones
  bool partial = false;             // as FindOptions::partial
};

// Throws Error::input when a layer with experts is missing, which is a warning if `partial`, or
// lies beyond the model. `layers` ascends by index.
void check_layers(const ModelConfig& config, const LayerCheck& check,
                  const std::vector<ExpertLayer>& layers, std::vector<std::string>& warnings);

// The rule that a quantization config has for a module; null when it has none.
[[nodiscard]] const ModuleQuantization* find_rule(const Quantization& quantization,
                                                  std::string_view module);

// Shell-style match of a whole name: '*', '?' and [...] sets, as Python's fnmatch.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace mxfp4
