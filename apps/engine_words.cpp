// The engines' own flags and variables that people type in vain. Read in vLLM 0.21.0 to 0.33.0
// (engine/arg_utils.py, envs.py).
#include <algorithm>
#include <array>

#include "apps/usage_errors.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kStages =
    "no influence: a file holds one layer, and each pipeline stage reads its own";
constexpr std::string_view kFirstArgument = "the checkpoint is the first argument";

struct EngineWord {
  std::string_view word;
  std::string_view answer;
};

constexpr std::array kWords = {
    EngineWord{"--tensor-parallel-size", "did you mean --tp-size?"},
    EngineWord{"--data-parallel-size", "did you mean --dp-size?"},
    EngineWord{"--prefill-context-parallel-size", "did you mean --pcp-size?"},
    EngineWord{"--ep", "did you mean --enable-expert-parallel?"},
    EngineWord{"--expert-placement-strategy", "did you mean --expert-placement?"},
    EngineWord{"--pipeline-parallel-size", kStages},
    EngineWord{"--pp", kStages},
    EngineWord{"--kernel-config", "its member moe_backend is --moe-backend here"},
    EngineWord{"--eplb-config", "its member num_redundant_experts is --num-redundant-experts here"},
    EngineWord{"--dtype", "--knob params_dtype=float16 says it where it matters"},
    EngineWord{"--hf-overrides",
               "--model-config FILE gives the config.json that the engine then sees"},
    EngineWord{"--enable-dp-attention",
               "SGLang cuts experts by --tp-size all the same: leave --dp-size out"},
    EngineWord{"--model", kFirstArgument},
    EngineWord{"--model-path", kFirstArgument},
    EngineWord{"--input", kFirstArgument},
    EngineWord{"VLLM_ALL2ALL_BACKEND", "--all2all-backend NAME says it"},
    EngineWord{"VLLM_MXFP4_USE_MARLIN", "--moe-backend marlin asks for the same"},
    EngineWord{
        "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16",
        "--moe-backend flashinfer_trtllm asks for the same, flashinfer_cutlass on capability 9.0"},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8",
               "--moe-backend flashinfer_trtllm_afp8 asks for the same"},
    EngineWord{"VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS",
               "--moe-backend flashinfer_cutlass_afp8 asks for the same"},
};

}  // namespace

std::string_view engine_word(std::string_view name) {
  // "--eplb-config.num_redundant_experts" is a member of the flag's value.
  const auto row = std::ranges::find(kWords, name.substr(0, name.find('.')), &EngineWord::word);
  return row == kWords.end() ? "" : row->answer;
}

}  // namespace mxfp4
