// Names of the block of a layer that holds the experts, in checkpoints and in the engine.
// Source: vLLM 0.33.0, the prefixes and hf_to_vllm_mapper of each model's file; for the block that
// the engine calls otherwise, 0.21.0 to 0.33.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/core/model_config.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

struct BlockNames {
  std::string_view checkpoint;  // "block_sparse_moe"
  std::string_view engine;      // "mlp"
};

// By the beginning of a model_type, "minimax_m2"; a model without a row calls the block "mlp".
[[nodiscard]] BlockNames block_names(std::string_view model_type);

// What compressed-tensors' targets lack for a release that asks for the projections of a layer's
// experts by one kind of names: a key of Quantization::lacks; empty if they lack nothing. Up to
// 0.31.0 the engine asks for gate_proj; then for the names that the model's class tells its
// experts.
[[nodiscard]] std::string unnamed_words(const Quantization& quantization,
                                        std::string_view model_type, int64_t layers);

// The path of a layer's experts in a checkpoint of the model: "model.layers.3.mlp.experts"; in
// gpt-oss's original names the path of the block itself, "block.3.mlp".
[[nodiscard]] std::string experts_path(const StyleRow& row, std::string_view model_type,
                                       int64_t layer);

// The same of a draft stage of DeepSeek-V4, counted from 0: "mtp.0.ffn.experts".
[[nodiscard]] std::string draft_experts_path(int64_t stage);

// The engine's path of a layer's experts where the checkpoint has another; empty if both are the
// same.
[[nodiscard]] std::string engine_path(Style style, int64_t layer);

}  // namespace mxfp4
