// The engines' own flags and variables that people type in vain. Read in vLLM 0.21.0 to 0.33.0
// (engine/arg_utils.py, envs.py).
#include <algorithm>
#include <array>

#include "apps/usage_errors.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kStages =
    "no influence: a file holds one layer, and each pipeline stage reads its own";
constexpr std::string_view kServing = "no influence: the experts' weights do not depend on it";
constexpr std::string_view kFirstArgument = "the checkpoint is the first argument";

struct EngineWord {
  std::string_view word;
  std::string_view answer;
};

constexpr std::array kWords = {
    EngineWord{"--prefill-context-parallel-size", "did you mean --pcp-size?"},
    EngineWord{"--ep", "did you mean --enable-expert-parallel?"},
    EngineWord{"--ep-size", "did you mean --enable-expert-parallel? It takes all ranks"},
    EngineWord{"--expert-placement-strategy", "did you mean --expert-placement?"},
    EngineWord{"--pipeline-parallel-size", kStages},
    EngineWord{"--pp", kStages},
    EngineWord{"--decode-context-parallel-size",
               "no influence: it works on the ranks of --tp-size, which cut the experts"},
    EngineWord{"--kernel-config", "its member moe_backend is --moe-backend here"},
    EngineWord{"--eplb-config",
               "its member num_redundant_experts is --num-redundant-experts here; the others have "
               "no influence on the first state"},
    EngineWord{"--dtype",
               "--knob params_dtype=float16 says it where it matters; bfloat16 is the default"},
    EngineWord{"--quantization",
               "the checkpoint says it; a value that gives the experts to another method, such as "
               "humming, is not decided here. --quantization-config is what the user adds"},
    EngineWord{"--hf-overrides",
               "--model-config FILE gives the config.json that the engine then sees"},
    EngineWord{"--speculative-config",
               "draft layers of the checkpoint are layers like the others; a draft model, or a "
               "moe_backend of its own, is a conversion of its own"},
    EngineWord{"--enable-dp-attention",
               "SGLang cuts experts by --tp-size all the same: leave --dp-size out"},
    EngineWord{"--max-lora-rank",
               "no influence by itself: --enable-lora says that adapters are served"},
    EngineWord{"--load-format",
               "no influence: the plug-in reads the blob, whatever reads the rest"},
    EngineWord{"--model", kFirstArgument},
    EngineWord{"--model-path", kFirstArgument},
    EngineWord{"--input", kFirstArgument},
    EngineWord{"--max-model-len", kServing},
    EngineWord{"--max-num-seqs", kServing},
    EngineWord{"--gpu-memory-utilization", kServing},
    EngineWord{"--kv-cache-dtype", kServing},
    EngineWord{"--attention-backend", kServing},
    EngineWord{"--enforce-eager", kServing},
    EngineWord{"--trust-remote-code", kServing},
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
               "VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4"},
    EngineWord{"AITER_SITUV2_A4W4",
               "from vLLM 0.31.0 on VLLM_ROCM_USE_AITER_MOE_SITUV2=a4w4 says it"},
    EngineWord{"VLLM_ROCM_AITER_MEGA_MOE_FUSE_SHARED_EXPERTS",
               "each rank then holds the shared expert in a slot more, which the engine quantizes "
               "itself: its bytes are in no checkpoint, so no blob holds them"},
    EngineWord{
        "VLLM_ROCM_MUSE_MOE_ONLINE_QUANT",
        "the engine then quantizes Muse's experts as it loads: no checkpoint has these bytes"},
};

}  // namespace

std::string_view engine_word(std::string_view name) {
  // "--eplb-config.num_redundant_experts" is a member of the flag's value.
  const auto row = std::ranges::find(kWords, name.substr(0, name.find('.')), &EngineWord::word);
  return row == kWords.end() ? "" : row->answer;
}

}  // namespace mxfp4
