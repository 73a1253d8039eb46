#include "lib/oracle/model_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace mxfp4 {
namespace {

// "@" and the activation, and the classes until the next "@". config: the one that the config names;
// layers: silu, and swiglustep in layers with a limit.
constexpr std::string_view kClassTable = R"(
@silu AXK1ForCausalLM AfmoeForCausalLM AliceAIForCausalLM AriaForConditionalGeneration BailingMoeForCausalLM BailingMoeV25MTPModel
  BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM BailingMoeV3MTPModel BailingMoeV3VLForConditionalGeneration
  BeamForCausalLM ClefFlashForJointSchema ClefOmniForJointSchema Cohere2MoeForCausalLM ColQwen3_5 DFlashLagunaForCausalLM DSparkDraftModel
  DSparkV41DraftModel DbrxForCausalLM DeepSeekMTPModel DeepSeekV4MTPModel DeepseekForCausalLM DeepseekV2ForCausalLM DeepseekV32ForCausalLM
  DeepseekV32MTPModel DeepseekV3BidirectionalModel DeepseekV3ForCausalLM DeepseekV41ForCausalLM DeepseekV4ForCausalLM
  DeepseekV4ForConditionalGeneration Dots3NoteForCausalLM Dots3NoteMTPModel Eagle3DeepseekV2ForCausalLM Eagle3DeepseekV3ForCausalLM
  EagleDeepSeekMTPModel EagleLlama4ForCausalLM EagleMistralLarge3ForCausalLM Ernie4_5_MoeForCausalLM Ernie4_5_VLMoeForConditionalGeneration
  Exaone4_5_MTP ExaoneMoEForCausalLM ExaoneMoeForCausalLM ExaoneMoeMTP FlexOlmoForCausalLM FlintForCausalLM Glm4MoeForCausalLM Glm4MoeLiteForCausalLM
  Glm4MoeLiteMTPModel Glm4MoeMTPModel Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration Glm5NextForCausalLM
  Glm5NextForConditionalGeneration Glm5NextMTPModel GlmMoeDsaForCausalLM GlmOcrForConditionalGeneration GlmOcrMTPModel GraniteMoeForCausalLM
  GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM HYV3ForCausalLM HYV3MTPModel HYV4ForCausalLM HYV4MTPModel
  HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM HunYuanVLForConditionalGeneration InklingForCausalLM InklingForConditionalGeneration
  InklingMTPModel InternS1ProForConditionalGeneration InternS2MobiusMTP InternS2PreviewForConditionalGeneration JambaForCausalLM
  JambaForSequenceClassification K2HorizonForCausalLM KimiK25ForConditionalGeneration KimiVLForConditionalGeneration Kolibri1ForCausalLM
  LagunaForCausalLM Lfm2MoeForCausalLM Llama4ForCausalLM Llama4ForConditionalGeneration LongCatFlashMTPModel LongcatFlashForCausalLM
  LongcatFlashNgramForCausalLM MellumForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2OmniForCausalLM MiniCPMOcrForConditionalGeneration
  MiniCPMV4_6ForConditionalGeneration MiniCPMV4_7ForConditionalGeneration MiniMaxM2ForCausalLM MistralLarge3ForCausalLM MixtralForCausalLM
  MuseSparkDSparkModel MuseSparkForConditionalGeneration OlmoeForCausalLM OpenPanguMTPModel OpenPanguVLForConditionalGeneration
  PanguEmbeddedForCausalLM PanguProMoEV2ForCausalLM PanguUltraMoEForCausalLM Param2MoEForCausalLM PhiMoEForCausalLM Qwen2MoeForCausalLM
  Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3NextMTP Qwen3OmniMoeForConditionalGeneration Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM
  Qwen3_5ForConditionalGeneration Qwen3_5MTP Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration Qwen3_5MoeMTP Qwen4ExpForCausalLM
  Qwen4ExpForConditionalGeneration Qwen4ExpMTP SarvamMLAForCausalLM SarvamMoEForCausalLM Step3TextForCausalLM Step5ForCausalLM Step5MTP
  TransformersMoEEmbeddingModel TransformersMoEForCausalLM TransformersMoEForMTP TransformersMoEForSequenceClassification
  TransformersMultiModalMoEForCausalLM
@config Cosmos3EdgeForConditionalGeneration InternS2MobiusForConditionalGeneration KimiK3ForConditionalGeneration KimiK3MTPModel KimiLinearForCausalLM
  NemotronHForCausalLM NemotronHMTPModel NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3
  NemotronH_Super_Omni_Reasoning_V3
@gelu_tanh DiffusionGemmaForBlockDiffusion EmbeddingGemma2Model Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
@swigluoai GptOssForCausalLM OpenAIPrivacyFilterForTokenClassification
@swigluoai_uninterleave MiniMaxM3MTP MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration
@layers Step3p5ForCausalLM Step3p5MTP
)";

// What an architecture may end with in place of a model's own ending.
constexpr std::string_view kTasks[] = {"ForTextEncoding",
                                       "EmbeddingModel",
                                       "ForSequenceClassification",
                                       "ForTokenClassification",
                                       "ClassificationModel",
                                       "ForRewardModeling",
                                       "RewardModel",
                                       "Model"};

std::vector<ModelClass> read_classes() {
  std::vector<ModelClass> classes;
  ModelClass row;
  std::istringstream words{std::string(kClassTable)};
  for (std::string word; words >> word;) {
    if (word.front() != '@') {
      row.architecture = std::move(word);
      classes.push_back(row);
      continue;
    }
    row.by_layer = word == "@layers";
    row.activation = row.by_layer ? "silu" : word == "@config" ? "" : word.substr(1);
  }
  return classes;
}

const ModelClass* row_of(std::string_view architecture) {
  const auto row = std::ranges::find(model_classes(), architecture, &ModelClass::architecture);
  return row == model_classes().end() ? nullptr : &*row;
}

}  // namespace

std::span<const ModelClass> model_classes() {
  static const std::vector<ModelClass> kClasses = read_classes();
  return kClasses;
}

std::string known_architecture(std::string_view architecture) {
  if (row_of(architecture) != nullptr) return std::string(architecture);
  for (const std::string_view task : kTasks) {
    if (!architecture.ends_with(task)) continue;
    architecture.remove_suffix(task.size());
    for (const std::string_view other : {"ForCausalLM", "ForConditionalGeneration"}) {
      std::string base = fmt::format("{}{}", architecture, other);
      if (row_of(base) != nullptr) return base;
    }
    break;
  }
  return "";
}

const ModelClass* find_model_class(std::string_view architecture) {
  return row_of(known_architecture(architecture));
}

}  // namespace mxfp4
