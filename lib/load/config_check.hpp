// Compares config.json with the tensors. The tensors decide; a config that says
// otherwise belongs to another model or to a broken download.
#pragma once

#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/layer_table.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

// Hidden size, intermediate size and number of experts of a layer, which may be a draft stage.
// `witness` is a tensor the sizes came from.
// Throws Error::input naming the config's file and key.
void check_sizes(const ModelConfig& config, const LayerDims& dims, bool draft,
                 const NamedTensor& witness);

// Throws Error::input where the config quantizes the activations of these layers in several ways: a
// blob holds the bytes of one.
void check_alike(const std::vector<LayerTable>& tables, const ModelConfig& config);

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

// Whether the config's keys for dense layers make layer `index` one with experts; empty when the
// config has none of those keys.
[[nodiscard]] std::optional<bool> config_has_experts(const ModelConfig& config, int64_t index);

// The number of experts that the config states for a layer; empty: none.
[[nodiscard]] std::optional<int64_t> experts_stated(const ModelConfig& config, bool draft);

}  // namespace mxfp4
