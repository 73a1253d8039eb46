#include "lib/load/block_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mxfp4 {
namespace {

struct BlockRow {
  std::string_view model_type;  // its beginning; a longer one lies before a shorter one
  std::string_view checkpoint;
  std::string_view engine = checkpoint;
};

constexpr std::array kBlocks = {
    BlockRow{"kimi_k3", "block_sparse_moe"},
    BlockRow{"kimi_linear", "block_sparse_moe"},
    BlockRow{.model_type = "minimax_m2", .checkpoint = "block_sparse_moe", .engine = "mlp"},
    BlockRow{"minimax", "block_sparse_moe"},
    BlockRow{"mixtral", "block_sparse_moe"},
    BlockRow{"phimoe", "block_sparse_moe"},
    BlockRow{"granitemoe", "block_sparse_moe"},
    BlockRow{"llama4", "feed_forward"},
    BlockRow{"jamba", "feed_forward"},
    BlockRow{"lfm2_moe", "feed_forward"},
    BlockRow{"muse_spark", "feed_forward"},
    BlockRow{"deepseek_v4", "ffn"},
    BlockRow{"gemma4", "moe"},
    BlockRow{"step3", "moe"},
    BlockRow{"step5", "moe"},
};
constexpr BlockRow kOther = {"", "mlp"};

const BlockRow& row_of_model(std::string_view model_type) {
  const auto* row = std::ranges::find_if(
      kBlocks, [&](const BlockRow& it) { return model_type.starts_with(it.model_type); });
  return row == kBlocks.end() ? kOther : *row;
}

// Classes whose checkpoints have another beginning than "model.", or that rename it.
struct ClassRow {
  std::string_view before;  // in a checkpoint, as the model is published
  std::span<const Rename> renames;
  std::span<const std::string_view> architectures;
  std::string_view model_type{};  // its beginning, for a config that names no class
};

constexpr std::array<Rename, 1> kLanguageModel = {
    {{"model.language_model.", "language_model.model."}}};
constexpr std::array<std::string_view, 16> kOfLanguageModel = {
    "ClefFlashForJointSchema",
    "Cosmos3EdgeForConditionalGeneration",
    "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration",
    "Glm5NextForConditionalGeneration",
    "GlmOcrForConditionalGeneration",
    "InternS1ProForConditionalGeneration",
    "InternS2MobiusForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration",
    "MiniCPMOcrForConditionalGeneration",
    "MiniCPMV4_6ForConditionalGeneration",
    "MiniCPMV4_7ForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Qwen4ExpForConditionalGeneration"};

constexpr std::array<Rename, 2> kAnyModel = {
    {{"model.language_model.", "language_model.model."}, {"model.", "language_model.model."}}};
constexpr std::array<std::string_view, 2> kOfGemma4 = {"Gemma4ForConditionalGeneration",
                                                       "Gemma4UnifiedForConditionalGeneration"};
constexpr std::array<std::string_view, 2> kOfAnyModel = {"MiMoV2OmniForCausalLM",
                                                         "OpenPanguVLForConditionalGeneration"};

constexpr std::array<Rename, 1> kInner = {{{"model.", "language_model.model."}}};
constexpr std::array<std::string_view, 2> kOfInner = {"BailingMoeV3VLForConditionalGeneration",
                                                      "Ernie4_5_VLMoeForConditionalGeneration"};

// Up to 0.28.0 the second is not renamed.
constexpr std::array<Rename, 2> kThinker = {
    {{"thinker.model.", "language_model.model."}, {"model.", "language_model.model."}}};
constexpr std::array<std::string_view, 2> kOfThinker = {"ClefOmniForJointSchema",
                                                        "Qwen3OmniMoeForConditionalGeneration"};

constexpr std::array<Rename, 1> kTextOnly = {{{"model.language_model.", "model."}}};
constexpr std::array<std::string_view, 4> kOfTextOnly = {
    "Gemma4ForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "Qwen4ExpForCausalLM"};

constexpr std::array<Rename, 2> kAria = {{{"model.language_model.", "language_model.model."},
                                          {"language_model.model", "language_model"}}};
constexpr std::array<std::string_view, 1> kOfAria = {"AriaForConditionalGeneration"};

constexpr std::array<Rename, 1> kKimi = {
    {{"language_model.layers.", "language_model.model.layers."}}};
constexpr std::array<std::string_view, 2> kOfKimi = {"KimiK25ForConditionalGeneration",
                                                     "KimiK3ForConditionalGeneration"};
constexpr std::array<std::string_view, 3> kAsPublished = {
    "KimiVLForConditionalGeneration", "Llama4ForConditionalGeneration",
    "MiniMaxM3SparseForConditionalGeneration"};

constexpr std::array<Rename, 2> kInkling = {
    {{"model.llm.layers.", "model.layers."}, {"language_model.layers.", "model.layers."}}};
constexpr std::array<std::string_view, 2> kOfInkling = {"InklingForCausalLM",
                                                        "InklingForConditionalGeneration"};

constexpr std::array<Rename, 1> kDeepseek = {{{"layers.", "model.layers."}}};
constexpr std::array<std::string_view, 1> kOfDeepseek = {"DeepseekV4ForCausalLM"};
constexpr std::array<Rename, 1> kDeepseekVision = {{{"layers.", "language_model.model.layers."}}};
constexpr std::array<std::string_view, 2> kOfDeepseekVision = {
    "DeepseekV41ForCausalLM", "DeepseekV4ForConditionalGeneration"};

constexpr std::array kClasses = {
    ClassRow{"model.language_model.", kLanguageModel, kOfLanguageModel},
    ClassRow{"model.language_model.", kAnyModel, kOfGemma4},
    ClassRow{"model.", kAnyModel, kOfAnyModel},
    ClassRow{"model.", kInner, kOfInner},
    ClassRow{"thinker.model.", kThinker, kOfThinker},
    ClassRow{"model.", kTextOnly, kOfTextOnly},
    ClassRow{"language_model.model.", kAria, kOfAria},
    ClassRow{"language_model.model.", kKimi, kOfKimi, "kimi_k3"},
    ClassRow{"language_model.model.", {}, kAsPublished},
    ClassRow{"model.llm.", kInkling, kOfInkling, "inkling"},
    ClassRow{"", kDeepseekVision, kOfDeepseekVision, "deepseek_v41"},
    ClassRow{"", kDeepseek, kOfDeepseek, "deepseek_v4"},
};
constexpr ClassRow kOtherClass = {"model.", {}, {}};

const ClassRow& row_of_class(const std::vector<std::string>& architectures,
                             std::string_view model_type) {
  const auto named = [&](const ClassRow& row) {
    if (architectures.empty()) {
      return !row.model_type.empty() && model_type.starts_with(row.model_type);
    }
    return std::ranges::find(row.architectures, architectures.front()) != row.architectures.end();
  };
  const auto* row = std::ranges::find_if(kClasses, named);
  return row == kClasses.end() ? kOtherClass : *row;
}

}  // namespace

std::span<const Rename> class_renames(const std::vector<std::string>& architectures,
                                      std::string_view model_type) {
  return row_of_class(architectures, model_type).renames;
}

BlockNames block_names(std::string_view model_type) {
  const BlockRow& row = row_of_model(model_type);
  return {row.checkpoint, row.engine};
}

std::string experts_path(const StyleRow& row, const ModelConfig& config, int64_t layer) {
  if (row.style == Style::kGptOssOriginal) return fmt::format("block.{}.mlp", layer);
  if (row.style == Style::kDeepseekV4) return fmt::format("layers.{}.ffn.experts", layer);
  return fmt::format("{}layers.{}.{}.experts",
                     row_of_class(config.architectures, config.model_type).before, layer,
                     row_of_model(config.model_type).checkpoint);
}

std::string draft_experts_path(int64_t stage) { return fmt::format("mtp.{}.ffn.experts", stage); }

std::string engine_path(Style style, int64_t layer) {
  if (style == Style::kGptOssOriginal) return fmt::format("model.layers.{}.mlp.experts", layer);
  if (style == Style::kDeepseekV4) return fmt::format("model.layers.{}.ffn.experts", layer);
  return {};
}

}  // namespace mxfp4
