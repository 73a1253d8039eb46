// What the engine's own class of a model cannot do, or a platform; made by tests/engines/models.py --table from the wheels. "@", the first release in
// which it is so, the platforms, what is missing, and the names until the next "@"; a later row of a name replaces an earlier one. l: adapters (LoRA);
// e: redundant experts of EPLB; s: experts' inputs split by tensor parallelism; t: more tensor-parallel ranks than experts; p: the class cannot be made there; q: the quantization; -: nothing.
#pragma once

#include <string_view>

namespace mxfp4 {

inline constexpr std::string_view kClassTable = R"(
@0.21.0 rocm q auto-round
@0.21.0 cuda,rocm,xpu,cpu s AfmoeForCausalLM Glm4MoeForCausalLM Glm4MoeLiteForCausalLM Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration
  GlmOcrForConditionalGeneration MixtralForCausalLM
@0.21.0 cuda,rocm,xpu,cpu es BailingMoeForCausalLM BailingMoeV2ForCausalLM Dots1ForCausalLM FlexOlmoForCausalLM Gemma4ForCausalLM
  Gemma4ForConditionalGeneration Grok1ForCausalLM Grok1ModelForCausalLM JambaForCausalLM JambaForSequenceClassification LongcatFlashForCausalLM
  OlmoeForCausalLM Param2MoEForCausalLM PhiMoEForCausalLM SarvamMLAForCausalLM SarvamMoEForCausalLM
@0.21.0 cuda,rocm,xpu,cpu les BailingMoeV2_5ForCausalLM DeepSeekV4MTPModel DeepseekV4ForCausalLM KimiLinearForCausalLM MiniMaxForCausalLM
  MiniMaxM1ForCausalLM MiniMaxText01ForCausalLM
@0.21.0 cuda,rocm,xpu,cpu lest Cohere2MoeForCausalLM Step3TextForCausalLM
@0.21.0 cuda,rocm,xpu,cpu t ColQwen3_5 InternS1ProForConditionalGeneration Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3VLMoeForConditionalGeneration
  Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
@0.21.0 cuda,rocm,xpu,cpu l DeepSeekMTPModel KimiK25ForConditionalGeneration KimiVLForConditionalGeneration LongCatFlashMTPModel NemotronHMTPModel
  NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Super_Omni_Reasoning_V3 OpenPanguMTPModel
@0.21.0 cuda,rocm,xpu,cpu st Ernie4_5_MoeForCausalLM ExaoneMoEForCausalLM HYV3ForCausalLM HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM
  HunYuanVLForConditionalGeneration LagunaForCausalLM Lfm2MoeForCausalLM
@0.21.0 cuda,rocm,xpu,cpu est Ernie4_5_VLMoeForConditionalGeneration MiniMaxM2ForCausalLM Qwen2MoeForCausalLM
@0.21.0 cuda,rocm,xpu,cpu lst Exaone4_5_MTP ExaoneMoeMTP HYV3MTPModel Step3p5ForCausalLM Step3p5MTP
@0.21.0 cuda,rocm,xpu,cpu ls Glm4MoeLiteMTPModel Glm4MoeMTPModel GlmOcrMTPModel
@0.21.0 cuda,rocm,xpu,cpu e GptOssForCausalLM GraniteMoeForCausalLM GraniteMoeHybridForCausalLM GraniteMoeSharedForCausalLM
@0.21.0 cuda,rocm,xpu,cpu lt MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2OmniForCausalLM Qwen3NextMTP Qwen3OmniMoeForConditionalGeneration
  Qwen3_5MTP Qwen3_5MoeMTP
@0.22.0 cuda,rocm,xpu,cpu t InternS2PreviewForConditionalGeneration
@0.22.0 cuda,rocm,xpu,cpu lt MiniCPMV4_6ForConditionalGeneration
@0.22.1 cuda,rocm,xpu,cpu t MellumForCausalLM
@0.23.0 cuda,rocm,xpu,cpu es Gemma4UnifiedForConditionalGeneration
@0.24.0 cuda,rocm,xpu,cpu les AriaForConditionalGeneration DbrxForCausalLM DiffusionGemmaForBlockDiffusion
@0.24.0 cuda,cpu ls DeepSeekV4MTPModel DeepseekV4ForCausalLM
@0.24.0 cuda,rocm,xpu,cpu lest MiniMaxM3MTP MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration
@0.24.0 cuda,rocm,xpu,cpu s TransformersMoEEmbeddingModel TransformersMoEForCausalLM TransformersMoEForSequenceClassification
  TransformersMultiModalMoEForCausalLM
@0.25.0 cuda,rocm,xpu,cpu les BailingMoeV25MTPModel OpenAIPrivacyFilterForTokenClassification
@0.25.0 cuda,rocm,xpu,cpu lst DFlashLagunaForCausalLM
@0.25.0 cuda,cpu ls DSparkDraftModel
@0.25.0 cuda,rocm,xpu,cpu es GptOssForCausalLM
@0.25.0 cuda,rocm,xpu,cpu t MiniCPMV4_6ForConditionalGeneration
@0.25.0 cuda,rocm,xpu,cpu - TransformersMoEEmbeddingModel TransformersMoEForCausalLM TransformersMoEForSequenceClassification
  TransformersMultiModalMoEForCausalLM
@0.26.0 cuda,rocm,xpu,cpu l Cosmos3EdgeForConditionalGeneration
@0.26.0 rocm,xpu les DSparkDraftModel
@0.26.0 cuda,rocm,xpu,cpu es InklingForCausalLM InklingForConditionalGeneration LongcatFlashNgramForCausalLM
@0.26.0 cuda,rocm,xpu,cpu les InklingMTPModel
@0.27.0 xpu q quark
@0.27.0 cuda,cpu l DSparkDraftModel DeepSeekV4MTPModel DeepseekV4ForCausalLM
@0.27.0 cuda,rocm,xpu,cpu st ExaoneMoeForCausalLM
@0.27.0 cuda,xpu,cpu le KimiK3ForConditionalGeneration KimiK3MTPModel KimiLinearForCausalLM
@0.27.0 rocm les KimiK3ForConditionalGeneration KimiK3MTPModel
@0.27.0 cuda,rocm,xpu,cpu t Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
@0.28.0 rocm - auto-round
@0.28.0 cuda,rocm,xpu,cpu les BailingMoeV3ForCausalLM BailingMoeV3MTPModel
@0.28.0 cuda,rocm,xpu,cpu l Dots3NoteForCausalLM Dots3NoteMTPModel
@0.28.0 cuda,rocm,xpu,cpu t InternS2MobiusForConditionalGeneration
@0.28.0 cuda,rocm,xpu,cpu lt InternS2MobiusMTP
@0.29.0 cuda,rocm,xpu,cpu l DeepseekV32MTPModel NemotronH_Omni_Reasoning_V3
@0.29.0 cuda,rocm,xpu,cpu - FlexOlmoForCausalLM HunYuanMoEV1ForCausalLM
@0.29.0 cuda,cpu - DeepseekV4ForCausalLM
@0.29.0 cuda,rocm,xpu,cpu e GraniteMoeSWAForCausalLM
@0.29.0 cuda,cpu st HYV4ForCausalLM
@0.29.0 rocm,xpu p HYV4ForCausalLM HYV4MTPModel
@0.29.0 xpu p Qwen4ExpForCausalLM Qwen4ExpForConditionalGeneration Qwen4ExpMTP
@0.29.0 cuda,cpu lst HYV4MTPModel
@0.29.0 cuda,rocm,xpu,cpu t Qwen3OmniMoeForConditionalGeneration
@0.29.0 cuda,rocm,cpu t Qwen4ExpForCausalLM Qwen4ExpForConditionalGeneration
@0.29.0 cuda,rocm,cpu lt Qwen4ExpMTP
@0.30.0 cuda,rocm,xpu,cpu les BailingMoeV3VLForConditionalGeneration
@0.30.0 cpu p DSparkDraftModel DeepSeekV4MTPModel
@0.30.0 cuda,xpu,cpu l DSparkV41DraftModel DeepseekV41ForCausalLM
@0.30.0 rocm les DSparkV41DraftModel DeepseekV41ForCausalLM
@0.30.0 xpu es DeepseekV4ForCausalLM
@0.30.0 cpu les DeepseekV4ForCausalLM
@0.30.0 rocm es DeepseekV4ForConditionalGeneration
@0.30.0 xpu,cpu p DeepseekV4ForConditionalGeneration
@0.30.0 cuda,rocm,cpu l Glm5NextForCausalLM Glm5NextMTPModel
@0.30.0 xpu p Glm5NextForCausalLM Glm5NextForConditionalGeneration Glm5NextMTPModel
@0.30.0 rocm st HYV4ForCausalLM
@0.30.0 rocm lst HYV4MTPModel
@0.30.0 cuda,rocm,xpu,cpu t K2HorizonForCausalLM
@0.31.0 cuda,rocm,xpu,cpu - NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 NemotronH_Super_Omni_Reasoning_V3
@0.32.0 cuda,rocm,xpu,cpu t ClefOmniForJointSchema MiniCPMV4_7ForConditionalGeneration
@0.32.0 cuda,rocm,xpu,cpu les EmbeddingGemma2Model
@0.32.0 cuda,rocm,xpu,cpu - MellumForCausalLM
@0.33.0 cuda,rocm,xpu,cpu st AliceAIForCausalLM Step5ForCausalLM
@0.33.0 cuda,rocm,xpu,cpu ls BeamForCausalLM
@0.33.0 cuda,rocm,xpu,cpu t ClefFlashForJointSchema MiniCPMOcrForConditionalGeneration
@0.33.0 cuda,rocm,xpu,cpu les FlintForCausalLM
@0.33.0 xpu les KimiLinearForCausalLM
@0.33.0 cuda,rocm,xpu,cpu e MuseSparkDSparkModel MuseSparkForConditionalGeneration
@0.33.0 cuda,rocm,xpu,cpu lst Step5MTP
)";

}  // namespace mxfp4
