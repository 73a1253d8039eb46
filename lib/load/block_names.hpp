// Names of a layer's experts in checkpoints and in the engine: what lies before the layers, and the
// block that holds the experts. Source: vLLM 0.21.0 to 0.33.0, the prefixes and hf_to_vllm_mapper
// of each model's class (tests/engines/module_names.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

struct BlockNames {
  std::string_view checkpoint;  // "block_sparse_moe"
  std::string_view engine;      // "mlp"
};

// By the beginning of a model_type, "minimax_m2"; a model without a row calls the block "mlp".
[[nodiscard]] BlockNames block_names(std::string_view model_type);

// What the first class renames in names of modules, in order; without a class the model_type's.
[[nodiscard]] std::span<const Rename> class_renames(const std::vector<std::string>& architectures,
                                                    std::string_view model_type);

// The path of a layer's experts in a checkpoint of the model: "model.layers.3.mlp.experts"; in
// gpt-oss's original names the path of the block itself, "block.3.mlp".
[[nodiscard]] std::string experts_path(const StyleRow& row, const ModelConfig& config,
                                       int64_t layer);

// The same of a draft stage of DeepSeek-V4, counted from 0: "mtp.0.ffn.experts".
[[nodiscard]] std::string draft_experts_path(int64_t stage);

// The engine's path of a layer's experts where the checkpoint has another; empty if both are the
// same.
[[nodiscard]] std::string engine_path(Style style, int64_t layer);

}  // namespace mxfp4
