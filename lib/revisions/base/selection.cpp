// How vLLM 0.21.0 chooses: fused_moe/oracle/mxfp4.py (map_mxfp4_backend,
// _get_priority_backends*, select_mxfp4_moe_backend, select_deepseek_v4_mxfp4_moe_backend) with its
// message texts.
#include <vector>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"

namespace mxfp4::base {
namespace {

using enum Backend;

std::vector<EnvOverrideRow> env_overrides() {
  return {
      {.variable = "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16",
       .dropped_when_zero = {FLASHINFER_TRTLLM_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_BF16},
       // No platform test: a ROCm device with such a capability takes part.
       .tries = {{capability_is(9, 0), FLASHINFER_CUTLASS_MXFP4_BF16, ""},
                 {capability_family(10), FLASHINFER_TRTLLM_MXFP4_BF16, ""}},
       .otherwise = {"ValueError",
                     "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16=1 is set but the current device "
                     "capability is not supported. Only SM90 (CUTLASS) and SM100+ (TRTLLM) are "
                     "supported."}},
      {.variable = "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8",
       .tries = {{always(), FLASHINFER_TRTLLM_MXFP4_MXFP8, "mxfp8"}}},
      {.variable = "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS",
       .tries = {{always(), FLASHINFER_CUTLASS_MXFP4_MXFP8, "mxfp8"}}},
      {.variable = "VLLM_MXFP4_USE_MARLIN", .tries = {{always(), MARLIN, ""}}},
  };
}

SelectorRow default_selector() {
  return {
      .selector = Selector::kGptOss,
      .uses_keys = true,
      .drops_other_keys = false,
      .priorities = {{always(),
                      {FLASHINFER_TRTLLM_MXFP4_BF16, AITER_MXFP4_BF16, AITER_MXFP4_FP8, TRITON,
                       FLASHINFER_CUTLASS_MXFP4_BF16, MARLIN, BATCHED_MARLIN, XPU, EMULATION}}},
      .env_overrides = env_overrides(),
      .exhausted =
          {
              // The requested key is ignored here.
              {.when = platform_is(Platform::kXpu), .last_try = ForcedTry{always(), XPU, ""}},
              {.when = any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)}),
               .refusal = Refusal{"NotImplementedError",
                                  "No MXFP4 MoE backend supports the deployment configuration."}},
              {.when = always()},
          },
  };
}

SelectorRow deepseek_v4_selector() {
  return {
      .selector = Selector::kDeepseekV4,
      .uses_keys = false,
      .priorities = {{all_of({platform_is(Platform::kRocm), routing_in({"DeepseekV4"})}),
                      {TRITON_UNFUSED, AITER_MXFP4_BF16}},
                     {platform_is(Platform::kRocm), {AITER_MXFP4_BF16}},
                     {always(),
                      {FLASHINFER_TRTLLM_MXFP4_MXFP8, DEEPGEMM_MXFP4, MARLIN, BATCHED_MARLIN}}},
      .exhausted = {{.when = always(),
                     .refusal = Refusal{"NotImplementedError",
                                        "No MXFP4 MoE backend supports the deployment "
                                        "configuration."}}},
  };
}

}  // namespace

std::vector<AliasRow> aliases() {
  return {
      {"deep_gemm", {DEEPGEMM_MXFP4}},
      {"flashinfer_trtllm", {FLASHINFER_TRTLLM_MXFP4_BF16}},
      {"flashinfer_trtllm_afp8", {FLASHINFER_TRTLLM_MXFP4_MXFP8}},
      {"flashinfer_cutlass", {FLASHINFER_CUTLASS_MXFP4_BF16}},
      {"flashinfer_cutlass_afp8", {FLASHINFER_CUTLASS_MXFP4_MXFP8}},
      {"triton", {TRITON}},
      {"triton_unfused", {TRITON_UNFUSED}},
      {"humming", {HUMMING}},
      {"marlin", {MARLIN}},
      {"aiter", {AITER_MXFP4_BF16}},
      {"aiter_mxfp4_fp8", {AITER_MXFP4_FP8}},
      {"xpu", {XPU}},
      {"emulation", {EMULATION}},
  };
}

std::vector<ReplacementRow> replacements() { return {{batched_format(), MARLIN, BATCHED_MARLIN}}; }

std::vector<SelectorRow> selectors() { return {default_selector(), deepseek_v4_selector()}; }

Messages messages() {
  return {
      .unknown_backend = {"ValueError",
                          "moe_backend='{moe_backend}' is not supported for MXFP4 MoE. Expected "
                          "one of {aliases}."},
      .unsupported = {"ValueError",
                      "Mxfp4 MoE backend '{value}' does not support the deployment configuration "
                      "since {reason}."},
      .key_conflict = {"ValueError",
                       "checkpoint declares MoE activation={model_key} but "
                       "quantization_config.moe.activation={override}; remove the override or "
                       "align it with the checkpoint."},
      .no_variant = {"ValueError",
                     "moe_backend='{moe_backend}' does not support activation={key}; supported "
                     "variants: {candidates}"},
      .no_classes = {"ValueError", "Unknown MXFP4 MoE backend: {value}"},
  };
}

}  // namespace mxfp4::base
