// A checkpoint as a conversion sees it: its source, its configuration, and where its MoE layers
// lie; and the plan of what is made of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "formats/source/source.hpp"
#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

struct OpenedCheckpoint {
  std::filesystem::path path;  // as given
  std::shared_ptr<Source> source;
  std::optional<std::string> config_text;
  std::optional<ModelConfig> config;
  ModelLayers model;
  bool layers_chosen = false;  // only some of its layers were asked for
  bool imagined = false;       // from a config without weights
  size_t layers_left_out = 0;  // because others were asked for
};

// A checkpoint with the plan of one rank's blob: a file for each layer of input.model.
struct PlannedCheckpoint {
  OpenedCheckpoint input;
  const Layout* layout = nullptr;  // null: the blob stops at the loaded layout
  Plan plan;
};

}  // namespace mxfp4
