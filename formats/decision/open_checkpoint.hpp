// Opens a checkpoint as the rules of a release load it. Reads only headers and configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "formats/checkpoint/opened_checkpoint.hpp"
#include "formats/decision/config_only.hpp"
#include "formats/source/source.hpp"
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
