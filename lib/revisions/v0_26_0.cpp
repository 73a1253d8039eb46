// vLLM 0.26.0: 0.27.0 without AITER's Triton kernel, without gfx1250, and without emulation for
// generic models on ROCm, where the unfused Triton kernel is the last try instead.
#include <algorithm>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

Condition on_gfx950() {
  return all_of({platform_is(Platform::kRocm), arch_contains("gfx950"), package("aiter"),
                 env_switch("VLLM_ROCM_USE_AITER", false)});
}

void undo_aiter(RuleSet& rules) {
  std::erase_if(rules.classes,
                [](const ExpertClass& row) { return row.name == "AiterW4A16ExpertsMonolithic"; });
  edit::backend(rules, AITER_MXFP4_BF16).classes = {"AiterExperts"};
  ExpertClass& aiter = edit::expert_class(rules, "AiterExperts");
  edit::condition(rules, "AiterExperts", "device") = r2026_05_18::aiter_moe_enabled();
  aiter.suffix->when = none_of({r2026_05_18::aiter_moe_enabled()});
  edit::condition(rules, "AiterW4A8ExpertsMonolithic", "device") = on_gfx950();
  // The assertion on Mori asks for AITER, which this release knows on two devices.
  rules.requirements.front().must_hold =
      any_of({none_of({all_of({all2all_in_use(),
                               all2all_backend_in({"mori_high_throughput", "mori_low_latency"})})}),
              all_of({r2026_05_18::aiter_moe_enabled(), gated()})});
  std::erase_if(rules.layouts, [](const LayoutRow& row) {
    return row.backend == AITER_MXFP4_BF16 && row.when.text == "gfx1250";
  });
}

// gfx1250 is a gfx12 as any other. Marlin refuses both of NVLink's all-to-all kernels, and TRTLLM's
// fused router refuses DeepSeek-V3's routing method.
void undo_devices(RuleSet& rules) {
  const Condition rocm =
      any_of({arch_contains("gfx90a"), arch_contains("gfx942"), arch_contains("gfx950"),
              arch_contains("gfx11"), arch_contains("gfx12")});
  const Condition triton =
      all_of({package("triton_kernels"),
              any_of({all_of({platform_is(Platform::kCuda), capability_at_least(9, 0),
                              capability_below(11, 0)}),
                      all_of({platform_is(Platform::kRocm), rocm})})});
  for (const std::string_view name :
       {"OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts", "UnfusedOAITritonExperts"}) {
    edit::condition(rules, name, "device") = triton;
  }
  for (const std::string_view name : {"MarlinExperts", "BatchedMarlinExperts"}) {
    edit::condition(rules, name, "parallel") = not_nvlink();
  }
  edit::condition(rules, "TrtLlmMxfp4ExpertsMonolithic", "routing") =
      routing_in({"Renormalize", "RenormalizeNaive"});
}

void undo_exhausted(RuleSet& rules) {
  edit::remove(edit::selector(rules, Selector::kDeepseekV4).priorities[1].backends, EMULATION);
  std::vector<ExhaustedRow>& rows = edit::selector(rules, Selector::kGptOss).exhausted;
  rows.pop_back();
  rows.push_back(
      {.when = platform_is(Platform::kRocm), .last_try = ForcedTry{always(), TRITON_UNFUSED, ""}});
  rows.push_back({.when = platform_is(Platform::kCuda),
                  .refusal = Refusal{"NotImplementedError",
                                     "No MXFP4 MoE backend supports the deployment configuration. "
                                     "weight_key=kMxfp4Static, activation_key={model_key}. Native "
                                     "backends require specific hardware. Set "
                                     "`VLLM_LOGGING_LEVEL=DEBUG` to see detailed unsupported "
                                     "reasons. "}});
  rows.push_back({.when = always()});
}

// Every mxfp4 checkpoint gets the gpt-oss method (quantization/mxfp4.py, get_quant_method), and the
// engine serves DeepSeek-V4 of Quark, Kimi-K3 and AutoRound otherwise or not at all. No branch of
// the generic loader takes a bias (fused_moe/routed_experts.py, weight_loader).
void undo_callers(RuleSet& rules) {
  const auto older = r2026_05_18::callers();
  for (CallerRow& row : rules.callers) {
    if (row.text != "quant_method mxfp4, any other model_type") continue;
    row = *std::ranges::find(older, row.text, &CallerRow::text);
  }
  std::erase_if(rules.callers, [](const CallerRow& row) {
    return row.text == "Quark fp4 weights, model_type deepseek_v4" ||
           row.text == "compressed-tensors mxfp4-pack-quantized, model_type kimi_k3" ||
           row.method == "INCMxfp4MoEMethod";
  });
  rules.loader.loads_biases = false;
  rules.loader.creates_biases = false;
}

// The generic converter has no branch for emulation and names fewer backends.
void undo_converters_0_26(RuleSet& rules) {
  constexpr std::string_view kExpected = "TRTLLM, Triton, AITER, or XPU";
  for (const Backend backend : {FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8, CPU,
                                NONE, AITER_MXFP4_MXFP4, AITER_MXFP4_FP8}) {
    for (LayoutRow& row : rules.layouts) {
      const bool refused = row.refusal.starts_with("Unsupported mxfp4_backend for Mxfp4MoEMethod");
      if (refused && row.backend == backend && row.family == Family::kGeneric) {
        row = edit::generic_refusal(backend, kExpected);
      }
    }
  }
  edit::drop_layouts(rules, EMULATION, Family::kGeneric);
  edit::add_layouts(rules, {edit::generic_refusal(EMULATION, kExpected)});
  edit::converter(rules, Family::kGeneric, EMULATION).supported = false;
}

}  // namespace

const Release kRelease0260 = {
    .name = "vllm-0.26.0",
    .version = "0.26.0",
    .date = "2026-07-25",
    .commit = "ffd46bfab",
    .pins = {{"flashinfer", "0.6.14"}, {"humming-kernels", "0.1.10"}},
    .changes = "as 0.27.0, without SiTU, gfx1250 and AITER's Triton kernel",
    .executed = "12,335 of 12,335 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0270,
    .apply =
        [](RuleSet& rules) {
          undo_aiter(rules);
          undo_devices(rules);
          undo_exhausted(rules);
          undo_converters_0_26(rules);
          undo_callers(rules);
          // See kNoDeepgemmOn12.
          edit::drop_layouts(rules, DEEPGEMM_MXFP4, kCapability12);
          edit::remove(rules.activations, std::string_view("situ"));
          edit::remove_package(rules, "flashinfer_situ");
          edit::remove(rules.option_names, std::string_view("batched_triton"));
          const auto trtllm =
              std::ranges::find(rules.rounding, "FLASHINFER_TRTLLM_*",
                                [](const RoundingRow& row) { return row.when.text; });
          trtllm->intermediate_multiple = 256;
        },
};

}  // namespace mxfp4
