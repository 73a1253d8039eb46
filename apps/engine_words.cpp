#include "apps/engine_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "apps/engine_names.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kStages =
    "no influence: a file holds one layer, and each pipeline stage reads its own";
constexpr std::string_view kContext =
    "no influence: it works on the ranks of --tp-size, which cut the experts";
constexpr std::string_view kPlaces =
    "no influence: where a rank runs does not change what it holds; --dp-size is their number, "
    "--rank R writes one";
constexpr std::string_view kConfigs =
    "--model-config FILE gives the config.json that the engine then sees";
constexpr std::string_view kDrafts =
    "no influence: draft layers of the checkpoint are layers like the others; a draft model of its "
    "own is converted by itself";
constexpr std::string_view kReaders =
    "no influence: the plug-in reads the blob, whatever reads the rest";
constexpr std::string_view kAdapters =
    "no influence by itself: --enable-lora says that adapters are served";
constexpr std::string_view kOverride =
    "--quantization-config takes the object, as JSON or in a file";
constexpr std::string_view kServing = "no influence: the experts' weights do not depend on it";
constexpr std::string_view kDataParallel =
    "no influence by itself: --dp-size is the number of data-parallel ranks";
constexpr std::string_view kOtherFormats =
    "no influence: it is for experts of other formats than MXFP4";
constexpr std::string_view kUnknownFlag =
    "a flag of the engine; leave it out: the rules do not know what it does";
constexpr std::string_view kGone = "no influence: no release from 0.21.0 on reads it";
constexpr std::string_view kBuilding = "no influence: it counts while vLLM is built";
constexpr std::string_view kOtherMachines = "no influence: it is for machines that no rule knows";
constexpr std::string_view kComputing =
    "no influence: it counts while the engine computes, when the weights have their layout";

constexpr std::array kFlags = {
    EngineWord{"--pipeline-parallel-size", kStages, true},
    EngineWord{"--pp-size", kStages, true},
    EngineWord{"--pp", kStages, true},
    EngineWord{"--decode-context-parallel-size", kContext, true},
    EngineWord{"--dcp-size", kContext, true},
    EngineWord{"--dcp", kContext, true},
    EngineWord{"--data-parallel-size-local", kPlaces, true},
    EngineWord{"--data-parallel-rank", kPlaces, true},
    EngineWord{"--data-parallel-start-rank", kPlaces, true},
    EngineWord{"--data-parallel-address", kPlaces, true},
    EngineWord{"--data-parallel-rpc-port", kPlaces, true},
    EngineWord{"--data-parallel-backend", kPlaces, true},
    EngineWord{"--data-parallel-hybrid-lb", kPlaces, true},
    EngineWord{"--data-parallel-external-lb", kPlaces, true},
    EngineWord{"--data-parallel-multi-port-external-lb", kPlaces, true},
    EngineWord{"--dpn", kPlaces, true},
    EngineWord{"--dpr", kPlaces, true},
    EngineWord{"--dpl", kPlaces, true},
    EngineWord{"--dpa", kPlaces, true},
    EngineWord{"--dpp", kPlaces, true},
    EngineWord{"--dpb", kPlaces, true},
    EngineWord{"--dph", kPlaces, true},
    EngineWord{"--dpe", kPlaces, true},
    EngineWord{"--dpm", kPlaces, true},
    EngineWord{"--device-ids", kPlaces, true},
    EngineWord{"--nnodes", kPlaces, true},
    EngineWord{"--node-rank", kPlaces, true},
    EngineWord{"--master-addr", kPlaces, true},
    EngineWord{"--master-port", kPlaces, true},
    EngineWord{"--distributed-executor-backend", kPlaces, true},
    EngineWord{"--kernel-config", "its member moe_backend is --moe-backend here"},
    EngineWord{"--eplb-config",
               "its member num_redundant_experts is --num-redundant-experts here; the others have "
               "no influence on the first state"},
    EngineWord{"--dtype",
               "--knob params_dtype=float16 says it where it matters; bfloat16 is the default"},
    EngineWord{"--quantization",
               "the checkpoint says it; --quantization-config is what the user adds"},
    EngineWord{"--quantization-config", kOverride},
    EngineWord{"--allow-deprecated-quantization", kOtherFormats, true},
    EngineWord{"--hf-overrides", kConfigs},
    EngineWord{"--json-model-override-args", kConfigs},
    EngineWord{"--config-format", kConfigs},
    EngineWord{"--hf-config-path", kConfigs},
    EngineWord{"--speculative-config", kDrafts, true},
    EngineWord{"--sc", kDrafts, true},
    EngineWord{"--speculative-algorithm", kDrafts, true},
    EngineWord{"--speculative-draft-model-path", kDrafts, true},
    EngineWord{"--speculative-num-steps", kDrafts, true},
    EngineWord{"--speculative-num-draft-tokens", kDrafts, true},
    EngineWord{"--speculative-eagle-topk", kDrafts, true},
    EngineWord{"--spec-method", kDrafts, true},
    EngineWord{"--spec-model", kDrafts, true},
    EngineWord{"--spec-tokens", kDrafts, true},
    EngineWord{"--load-format", kReaders, true},
    EngineWord{"--safetensors-load-strategy", kReaders, true},
    EngineWord{"--safetensors-prefetch-block-size", kReaders, true},
    EngineWord{"--safetensors-prefetch-num-threads", kReaders, true},
    EngineWord{"--ignore-patterns", kReaders, true},
    EngineWord{"--max-parallel-loading-workers", kReaders, true},
    EngineWord{"--pt-load-map-location", kReaders, true},
    EngineWord{"--use-tqdm-on-load", kReaders, true},
    EngineWord{"--download-dir", kReaders, true},
    EngineWord{"--model-loader-extra-config", kReaders, true},
    EngineWord{"--max-lora-rank", kAdapters, true},
    EngineWord{"--max-loras", kAdapters, true},
    EngineWord{"--max-cpu-loras", kAdapters, true},
    EngineWord{"--max-lora-cls-labels", kAdapters, true},
    EngineWord{"--lora-dtype", kAdapters, true},
    EngineWord{"--lora-modules", kAdapters, true},
    EngineWord{"--lora-paths", kAdapters, true},
    EngineWord{"--lora-target-modules", kAdapters, true},
    EngineWord{"--default-mm-loras", kAdapters, true},
    EngineWord{"--fully-sharded-loras", kAdapters, true},
    EngineWord{"--specialize-active-lora", kAdapters, true},
    EngineWord{"--enable-mixed-moe-lora-format", kAdapters, true},
    EngineWord{"--enable-moe-shared-loras", kAdapters, true},
    EngineWord{"--enable-tower-connector-lora", kAdapters, true},
    EngineWord{"--enable-dp-attention",
               "SGLang cuts experts by --tp-size all the same: leave --dp-size out"},
    EngineWord{"--flashinfer-mxfp4-moe-precision", kUnknownFlag},
    EngineWord{"--enable-w4a4-mxfp4-megamoe", kUnknownFlag},
    EngineWord{"--moe-dp-size", kUnknownFlag},
    EngineWord{"--moe-dense-tp-size", kServing, true},
    EngineWord{"--deepep-mode", kComputing, true},
    EngineWord{"--init-expert-location", kUnknownFlag},
    EngineWord{"--enable-elastic-expert-backup", kUnknownFlag},
    EngineWord{"--disable-shared-experts-fusion", kUnknownFlag},
    EngineWord{"--enforce-shared-experts-fusion", kUnknownFlag},
    EngineWord{"--enable-dbo", kUnknownFlag},
    EngineWord{"--dbo-decode-token-threshold", kUnknownFlag},
    EngineWord{"--dbo-prefill-token-threshold", kUnknownFlag},
    EngineWord{"--elastic-ep-max-dp-size", kUnknownFlag},
    EngineWord{"--enable-fault-tolerance", kUnknownFlag},
    EngineWord{"--fault-tolerance-config", kUnknownFlag},
    EngineWord{"--model-class-overrides", kUnknownFlag},
    EngineWord{"--monokernel", kUnknownFlag},
    EngineWord{"--weight-transfer-config", kUnknownFlag},
    EngineWord{"--worker-cls", kUnknownFlag},
    EngineWord{"--worker-extension-cls", kUnknownFlag},
    EngineWord{"--ir-op-priority", kUnknownFlag},
    EngineWord{"--ubatch-size", kUnknownFlag},
    EngineWord{"--enable-elastic-ep", kUnknownFlag},
    EngineWord{"--enable-hc-sp", kUnknownFlag},
    EngineWord{"--model-impl", kUnknownFlag},
    EngineWord{"--performance-mode", kUnknownFlag},
    EngineWord{"--additional-config", kUnknownFlag},
    EngineWord{"--config", kUnknownFlag},
    EngineWord{"--expert-placement-strategy", "--expert-placement says it"},
    EngineWord{"--model", "the checkpoint is the first argument"},
    EngineWord{"--model-path", "the checkpoint is the first argument"},
    EngineWord{"--checkpoint", "the checkpoint is the first argument"},
    EngineWord{"--input", "the checkpoint is the first argument"},
    EngineWord{"--in", "the checkpoint is the first argument"},
    EngineWord{"--i", "the checkpoint is the first argument"},
    EngineWord{"--linear-backend", kServing, true},
    EngineWord{"--attention-backend", kServing, true},
    EngineWord{"--attention-config", kServing, true},
    EngineWord{"--compilation-config", kServing, true},
    EngineWord{"--optimization-level", kServing, true},
    EngineWord{"--enforce-eager", kServing, true},
    EngineWord{"--cudagraph-capture-sizes", kServing, true},
    EngineWord{"--kv-cache-dtype", kServing, true},
    EngineWord{"--block-size", kServing, true},
    EngineWord{"--max-model-len", kServing, true},
    EngineWord{"--max-num-seqs", kServing, true},
    EngineWord{"--gpu-memory-utilization", kServing, true},
    EngineWord{"--enable-prefix-caching", kServing, true},
    EngineWord{"--enable-chunked-prefill", kServing, true},
    EngineWord{"--async-scheduling", kServing, true},
    EngineWord{"--scheduling-policy", kServing, true},
    EngineWord{"--seed", kServing, true},
    EngineWord{"--trust-remote-code", kServing, true},
    EngineWord{"--tokenizer", kServing, true},
    EngineWord{"--served-model-name", kServing, true},
    EngineWord{"--host", kServing, true},
    EngineWord{"--port", kServing, true},
    EngineWord{"--api-key", kServing, true},
    EngineWord{"--reasoning-parser", kServing, true},
    EngineWord{"--tool-call-parser", kServing, true},
    EngineWord{"--enable-auto-tool-choice", kServing, true},
    EngineWord{"--chat-template", kServing, true},
    EngineWord{"--generation-config", kServing, true},
    EngineWord{"--limit-mm-per-prompt", kServing, true},
    EngineWord{"--disable-log-stats", kServing, true},
    EngineWord{"--cpu-offload-gb", kServing, true},
    EngineWord{"--ac", kServing, true},
    EngineWord{"--cc", kServing, true},
    EngineWord{"--dc", kServing, true},
};

constexpr std::array kVariables = {
    EngineWord{"VLLM_ALL2ALL_BACKEND", "--all2all-backend NAME says it"},
    EngineWord{"VLLM_MXFP4_USE_MARLIN", "--moe-backend marlin asks for the same"},
    EngineWord{
        "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16",
        "--moe-backend flashinfer_trtllm asks for the same, flashinfer_cutlass on capability 9.0"},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8",
               "--moe-backend flashinfer_trtllm_afp8 asks for the same"},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS",
               "--moe-backend flashinfer_cutlass_afp8 asks for the same"},
    EngineWord{"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4",
               "from vLLM 0.31.0 on VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4 asks for the same"},
    EngineWord{"VLLM_ROCM_USE_AITER_MOE_SITUV2",
               "before vLLM 0.31.0 VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4=1 asks for a8w4"},
    EngineWord{"AITER_SITUV2_A8W4",
               "from vLLM 0.28.0 on VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4=1 says it, from 0.31.0 on "
               "VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4, and the engine sets AITER's variable itself"},
    EngineWord{"AITER_SITUV2_A4W4",
               "from vLLM 0.31.0 on VLLM_ROCM_USE_AITER_MOE_SITUV2=a4w4 says it, and the engine "
               "sets AITER's variable itself"},
    EngineWord{"AITER_FORCE_A8W4", "SGLang reads it, vLLM does not"},
    EngineWord{"AITER_BF16_FP8_MOE_BOUND",
               "no influence: where it counts, the engine sets it itself", true},
    EngineWord{"VLLM_ROCM_AITER_MEGA_MOE_FUSE_SHARED_EXPERTS",
               "each rank then holds the shared expert in a slot more, which the engine quantizes "
               "itself: its bytes are in no checkpoint, so no blob holds them"},
    EngineWord{
        "VLLM_HUMMING_ONLINE_QUANT_CONFIG",
        "the engine reads it for --quantization humming, which quantizes other weights as it "
        "loads"},
    EngineWord{
        "VLLM_ROCM_MUSE_MOE_ONLINE_QUANT",
        "the engine then quantizes Muse's experts as it loads: no checkpoint has these bytes"},
    EngineWord{"VLLM_HAS_FLASHINFER_CUBIN",
               "it says that FlashInfer needs no compiler; --libs says which packages work there, "
               "--no-lib flashinfer that this one does not"},
    EngineWord{"VLLM_ELASTIC_EP_SCALE_UP_LAUNCH",
               "the engine sets it itself where it adds ranks to a running server, which get their "
               "experts from the others"},
    EngineWord{"VLLM_ROCM_MUSE_MOE_REDUCE_DTYPE", kComputing, true},
    EngineWord{"VLLM_USE_HW_AGNOSTIC",
               "no influence: it is for norms and activations of models by transformers", true},
    EngineWord{"VLLM_TEST_FORCE_LOAD_FORMAT", kReaders, true},
    EngineWord{"VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY", kServing, true},
    EngineWord{"VLLM_WEIGHT_OFFLOADING_DISABLE_UVA", kServing, true},
    EngineWord{"VLLM_NIXL_ABORT_REQUEST_TIMEOUT", kServing, true},
    EngineWord{"VLLM_DOCKER_BUILD_CONTEXT", kBuilding, true},
    EngineWord{"VLLM_MAIN_CUDA_VERSION", kBuilding, true},
    EngineWord{"VLLM_USE_PRECOMPILED", kBuilding, true},
    EngineWord{"VLLM_USE_PRECOMPILED_RUST", kBuilding, true},
    EngineWord{"VLLM_TPU_USING_PATHWAYS", kOtherMachines, true},
    EngineWord{"VLLM_XLA_USE_SPMD", kOtherMachines, true},
    EngineWord{"VLLM_USE_DEEP_GEMM_E8M0", kComputing, true},
    EngineWord{"VLLM_TARGET_DEVICE", "--platform or --arch says it"},
    EngineWord{"VLLM_PP_LAYER_PARTITION", kStages, true},
    EngineWord{"VLLM_USE_V1", kGone, true},
    EngineWord{"VLLM_ATTENTION_BACKEND", kGone, true},
    EngineWord{"VLLM_USE_TRITON_FLASH_ATTN", kGone, true},
    EngineWord{"VLLM_ROCM_USE_AITER_TRITON_BF16_GEMM", kGone, true},
    EngineWord{"VLLM_V1_USE_PREFILL_DECODE_ATTENTION", kGone, true},
    EngineWord{"VLLM_USE_TRTLLM_ATTENTION", kGone, true},
    EngineWord{"VLLM_USE_TRTLLM_CONTEXT_ATTENTION", kGone, true},
    EngineWord{"VLLM_FLASH_ATTN_VERSION", kGone, true},
    EngineWord{"VLLM_DP_SIZE", kDataParallel, true},
    EngineWord{"VLLM_DP_RANK", kDataParallel, true},
    EngineWord{"VLLM_DP_RANK_LOCAL", kDataParallel, true},
    EngineWord{"VLLM_DP_MASTER_IP", kDataParallel, true},
    EngineWord{"VLLM_DP_MASTER_PORT", kDataParallel, true},
    EngineWord{"VLLM_FLASHINFER_MOE_BACKEND", kOtherFormats, true},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_FP4", kOtherFormats, true},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_FP8", kOtherFormats, true},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_FP16", kOtherFormats, true},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_INT4", kOtherFormats, true},
    EngineWord{"VLLM_MOE_USE_DEEP_GEMM", kOtherFormats, true},
    EngineWord{"VLLM_USE_NVFP4_CT_EMULATIONS", kOtherFormats, true},
    EngineWord{"VLLM_NVFP4_GEMM_BACKEND", kOtherFormats, true},
    EngineWord{"VLLM_DEEPEPLL_NVFP4_DISPATCH", kOtherFormats, true},
    EngineWord{"VLLM_ROCM_MOE_PADDING", kOtherFormats, true},
    EngineWord{"VLLM_MXFP4_EMULATION_DEQUANT_AT_LOAD",
               "no influence: it is for linear layers, and the experts keep their codes", true},
    EngineWord{"VLLM_DISABLE_DSV4_MEGAMOE_SHARED_EXPERT_FUSION",
               "no influence: the shared expert that mega MoE may take in is FP8, and the engine "
               "loads it itself",
               true},
    EngineWord{"VLLM_MOE_SKIP_PADDING", kComputing, true},
    EngineWord{"VLLM_MARLIN_USE_ATOMIC_ADD", kComputing, true},
    EngineWord{"VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE", kComputing, true},
    EngineWord{"VLLM_DISABLE_SHARED_EXPERTS_STREAM", kComputing, true},
    EngineWord{"VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD", kComputing, true},
    EngineWord{"VLLM_DEEP_GEMM_WARMUP", kComputing, true},
};

// Variables of programs that the engine uses, by their beginnings.
constexpr std::array<std::string_view, 15> kForeign = {
    "NCCL_",  "RCCL_", "GLOO_",    "UCX_", "NVSHMEM_",    "OMP_", "HF_",         "HSA_",
    "TORCH_", "CUDA_", "PYTORCH_", "HIP_", "TOKENIZERS_", "RAY_", "SAFETENSORS_"};
constexpr EngineWord kForeignWord{
    "", "no influence: no part of the engine that chooses or converts experts reads it", true};

// AITER's shuffles of weights were executed (tests/engines/README.md); they read no variable.
constexpr EngineWord kAiterWord{
    "", "no influence: AITER's kernels read it; what gives weights their layout does not", true};

// For the names of engine_names.hpp.
constexpr EngineWord kServed{"", kServing, true};

constexpr std::array kMoeBackends = {
    EngineWord{
        "deep_gemm_amxf4_mega_moe",
        "no release has it: images built from a branch call deep_gemm_mega_moe so when it takes "
        "FP4 activations; the layout is the same, deepgemm/mega-moe"},
};

const EngineWord* find_word(std::span<const EngineWord> table, std::string_view name) {
  const auto row = std::ranges::find(table, name, &EngineWord::word);
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

const EngineWord* engine_flag(std::string_view name) {
  // "--eplb-config.num-redundant-experts" is a member of the flag's value; "-O3" is short for
  // --optimization-level.
  const std::string_view flag = name.substr(0, name.find('.'));
  if (flag.size() == 4 && flag.starts_with("--o") && is_digit(flag[3])) return &kServed;
  const EngineWord* word = find_word(kFlags, flag);
  if (word == nullptr && is_serving_flag(flag)) word = &kServed;
  constexpr std::string_view kOff = "--no-";
  if (word != nullptr || !flag.starts_with(kOff)) return word;
  word = engine_flag(fmt::format("--{}", flag.substr(kOff.size())));
  return word != nullptr && word->no_influence ? word : nullptr;
}

const EngineWord* engine_variable(std::string_view name) {
  if (const EngineWord* word = find_word(kVariables, name)) return word;
  if (is_serving_variable(name)) return &kServed;
  const auto begins = [&](std::string_view start) { return name.starts_with(start); };
  if (std::ranges::any_of(kForeign, begins)) return &kForeignWord;
  // Names that begin as those that rules look at are taken for misspelt ones.
  const bool like_ours = begins("AITER_SITUV2") || begins("AITER_FORCE");
  return begins("AITER_") && !like_ours ? &kAiterWord : nullptr;
}

const EngineWord* engine_moe_backend(std::string_view name) {
  return find_word(kMoeBackends, name);
}

}  // namespace mxfp4
