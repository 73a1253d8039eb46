// A checkpoint as a conversion sees it: its source, its configuration, and where its MoE layers
// lie. Opening reads only headers and configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "formats/decision/config_only.hpp"
#include "formats/source/source.hpp"
#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct CheckpointOptions {
  std::filesystem::path path;
  std::optional<Style> style{};              // empty: detected
  std::optional<Family> family{};            // empty: the checkpoint's
  std::optional<std::string> config_text{};  // replaces the config.json that the input carries
  std::filesystem::path config_path{};       // of config_text, for messages
  std::set<int64_t> layers{};                // numbers of the layers to keep; empty: all
};

struct OpenedCheckpoint {
  std::filesystem::path path;  // as given
  std::shared_ptr<Source> source;
  std::optional<std::string> config_text;
  std::optional<ModelConfig> config;
  ModelLayers model;
  bool layers_chosen = false;  // CheckpointOptions::layers was not empty
  bool imagined = false;       // from a config without weights
  size_t layers_left_out = 0;  // because CheckpointOptions::layers does not name them
};

// `rules` say what the engine's loader does with the checkpoint. Throws Error::input,
// Error::unsupported if no method of the revision serves the checkpoint, Error::usage if
// options.layers names a layer that does not exist.
[[nodiscard]] OpenedCheckpoint open_checkpoint(const CheckpointOptions& options,
                                               const RuleSet& rules);
// The same with a source that open_source opened for options.path.
[[nodiscard]] OpenedCheckpoint open_checkpoint(std::shared_ptr<Source> source,
                                               const CheckpointOptions& options,
                                               const RuleSet& rules);

// The sizes of the model: ModelLayers::num_experts, and H and I, which all layers share. Throws
// Error::input when H or I differ.
[[nodiscard]] LayerDims common_dims(const ModelLayers& model);

}  // namespace mxfp4
