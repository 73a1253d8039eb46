// The two selection functions of vLLM 017e9f4448, fused_moe/oracle/mxfp4.py, and the assertions of
// fused_moe/config.py before them. No environment variable overrides the lists any more.
#include <array>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

using enum Backend;

SelectorRow default_selector() {
  return {
      .selector = Selector::kGptOss,
      .uses_keys = true,
      .priorities = {{always(),
                      {FLASHINFER_TRTLLM_MXFP4_BF16, FLASHINFER_TRTLLM_MXFP4_MXFP8,
                       AITER_MXFP4_BF16, AITER_MXFP4_FP8, AITER_MXFP4_MXFP4, TRITON,
                       FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8, MARLIN,
                       BATCHED_MARLIN, XPU, EMULATION}}},
      .exhausted =
          {
              // The requested key is ignored here.
              {.when = platform_is(Platform::kXpu), .last_try = ForcedTry{always(), XPU, ""}},
              {.when = platform_is(Platform::kCpu), .last_try = ForcedTry{always(), CPU, ""}},
              {.when = always(),
               .refusal = Refusal{"NotImplementedError",
                                  "No MXFP4 MoE backend supports the deployment configuration. "
                                  "weight_key=kMxfp4Static, activation_key={model_key}. Candidate "
                                  "backends were: {candidates}. Unsupported reasons: {reasons}. "}},
          },
  };
}

SelectorRow deepseek_v4_selector() {
  return {
      .selector = Selector::kDeepseekV4,
      .uses_keys = false,
      .priorities = {{all_of({platform_is(Platform::kRocm), routing_in({"DeepseekV4"})}),
                      {AITER_MXFP4_BF16, TRITON_UNFUSED}},
                     {platform_is(Platform::kRocm), {AITER_MXFP4_BF16, EMULATION}},
                     {platform_is(Platform::kXpu), {XPU}},
                     {always(),
                      {FLASHINFER_TRTLLM_MXFP4_MXFP8, DEEPGEMM_MXFP4, MARLIN, BATCHED_MARLIN}}},
      .exhausted = {{.when = always(),
                     .refusal = Refusal{"NotImplementedError",
                                        "No MXFP4 MoE backend supports the deployment "
                                        "configuration."}}},
  };
}

}  // namespace

std::span<const RequirementRow> requirements() {
  static const std::array kRows = {
      RequirementRow{
          any_of({none_of({all_of({all2all_in_use(), all2all_backend_in({"mori_high_throughput",
                                                                         "mori_low_latency"})})}),
                  all_of({aiter_moe_enabled(), gated()})}),
          {"AssertionError", "Mori needs to be used with aiter fused_moe for now."}},
      RequirementRow{any_of({gated(), platform_is(Platform::kCuda), platform_is(Platform::kXpu),
                             platform_is(Platform::kRocm)}),
                     {"NotImplementedError",
                      "is_act_and_mul=False is supported only for CUDA, XPU and ROCm for now"}},
  };
  return kRows;
}

std::span<const SelectorRow> selectors() {
  static const std::array kRows = {default_selector(), deepseek_v4_selector()};
  return kRows;
}

}  // namespace mxfp4::r2026_08_17
