#include "lib/load/block_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/load/module_rules.hpp"

namespace mxfp4 {
namespace {

struct BlockRow {
  std::string_view model_type;  // its beginning; a longer one lies before a shorter one
  std::string_view checkpoint;
  std::string_view before = "model.";  // of "layers" in a checkpoint
  std::string_view engine = checkpoint;
  bool tells_words = false;  // the class tells its experts the checkpoint's words, w1 (ckpt_names)
};

constexpr std::array kBlocks = {
    BlockRow{"kimi_k3", "block_sparse_moe", "language_model.model."},
    BlockRow{"kimi_linear", "block_sparse_moe"},
    BlockRow{.model_type = "minimax_m2",
             .checkpoint = "block_sparse_moe",
             .engine = "mlp",
             .tells_words = true},
    BlockRow{"minimax", "block_sparse_moe"},
    BlockRow{.model_type = "mixtral", .checkpoint = "block_sparse_moe", .tells_words = true},
    BlockRow{.model_type = "phimoe", .checkpoint = "block_sparse_moe", .tells_words = true},
    BlockRow{"granitemoe", "block_sparse_moe"},
    BlockRow{"llama4", "feed_forward"},
    BlockRow{"jamba", "feed_forward"},
    BlockRow{.model_type = "lfm2_moe", .checkpoint = "feed_forward", .tells_words = true},
    BlockRow{"muse_spark", "feed_forward"},
    BlockRow{.model_type = "deepseek_v4", .checkpoint = "ffn", .tells_words = true},
    BlockRow{"gemma4", "moe"},
    BlockRow{"inkling", "mlp", "model.llm."},
    BlockRow{"step3", "moe"},
    BlockRow{"step5", "moe"},
};
constexpr BlockRow kOther = {"", "mlp"};

const BlockRow& row_of_model(std::string_view model_type) {
  const auto* row = std::ranges::find_if(
      kBlocks, [&](const BlockRow& it) { return model_type.starts_with(it.model_type); });
  return row == kBlocks.end() ? kOther : *row;
}

}  // namespace

BlockNames block_names(std::string_view model_type) {
  const BlockRow& row = row_of_model(model_type);
  return {row.checkpoint, row.engine};
}

std::string experts_path(const StyleRow& row, std::string_view model_type, int64_t layer) {
  if (row.style == Style::kGptOssOriginal) return fmt::format("block.{}.mlp", layer);
  if (row.style == Style::kDeepseekV4) return fmt::format("layers.{}.ffn.experts", layer);
  const BlockRow& block = row_of_model(model_type);
  return fmt::format("{}layers.{}.{}.experts", block.before, layer, block.checkpoint);
}

std::string unnamed_words(const Quantization& quantization, std::string_view model_type,
                          int64_t layers) {
  if (!quantization.named_only) return {};
  constexpr int64_t kMost = 128;
  const BlockRow& row = row_of_model(model_type);
  const auto named = [&](std::string_view word) {
    return targets_name(quantization, row.checkpoint, word, std::min(layers, kMost));
  };
  const bool spoken = named("gate_proj");
  const bool numbered = named("w1");
  if (spoken == numbered) return {};
  if (!row.tells_words) return spoken ? "" : "targets that name gate_proj";
  return spoken ? "targets that name w1" : "targets that name gate_proj, not w1";
}

std::string draft_experts_path(int64_t stage) { return fmt::format("mtp.{}.ffn.experts", stage); }

std::string engine_path(Style style, int64_t layer) {
  if (style == Style::kGptOssOriginal) return fmt::format("model.layers.{}.mlp.experts", layer);
  if (style == Style::kDeepseekV4) return fmt::format("model.layers.{}.ffn.experts", layer);
  return {};
}

}  // namespace mxfp4
