// vLLM 0.32.0 (fused_moe/oracle/mxfp4.py): the lists fall back to backends without a key; Humming
// is listed, first on capability 9.0; CUTLASS and FlashInfer's MoE-EP kernels become backends.
#include "lib/revisions/releases/v0_32_0.hpp"

#include <utility>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// The kernels are compiled for these capabilities (csrc, mxfp4_experts_quant).
ExpertClass cutlass_mxfp4() {
  return generic_class(
      {.name = "CutlassExpertsMxfp4",
       .device = all_of(
           {platform_is(Platform::kCuda), capability_at_least(10, 0), capability_below(12, 0)}),
       .ungated = true,
       .activation = all_but_relu2(),
       .scheme = key_in({"mxfp4"}),
       .parallel = not_over({"deepep_high_throughput", "flashinfer_all2allv",
                             "flashinfer_nvlink_two_sided", "flashinfer_nvlink_one_sided"}),
       .routing = always()});
}

// The last check is the kernel's own: it lists every reason at once.
ExpertClass moe_ep() {
  ExpertClass row =
      generic_class({.name = "FlashInferMoeEpExperts",
                     .device = any_of({capability_is(10, 0), capability_is(10, 3)}),
                     .activation = activation_in({"silu"}),
                     .scheme = always(),
                     .parallel = all_of({expert_parallel(), none_of({batched_format()})}),
                     .routing = always()});
  const Condition deep_gemm = moe_backend_is("flashinfer_moe_ep_mega_deep_gemm");
  const Condition other_routing = none_of({routing_in({"DeepseekV4"})});
  row.checks.push_back({"MoE-EP", none_of({all_of({deep_gemm, other_routing, eplb()})}),
                        "kernel does not support routing method {routing_name}, EPLB"});
  row.checks.push_back({"MoE-EP", none_of({all_of({deep_gemm, other_routing})}),
                        "kernel does not support routing method {routing_name}"});
  row.checks.push_back(
      {"MoE-EP", none_of({all_of({deep_gemm, eplb()})}), "kernel does not support EPLB"});
  return row;
}

void add_backends(RuleSet& rules) {
  edit::add(rules.classes, cutlass_mxfp4());
  edit::add(rules.classes, moe_ep());
  edit::add_backend_after(
      rules, FLASHINFER_CUTLASS_MXFP4_BF16,
      {CUTLASS_MXFP4_MXFP4, "CUTLASS_MXFP4_MXFP4", "mxfp4", {"CutlassExpertsMxfp4"}});
  edit::add_backend_after(
      rules, HUMMING,
      {FLASHINFER_MOE_EP_CUTEDSL, "FLASHINFER_MOE_EP_CUTEDSL", "", {"FlashInferMoeEpExperts"}});
  edit::add_backend_after(
      rules, FLASHINFER_MOE_EP_CUTEDSL,
      {FLASHINFER_MOE_EP_DEEP_GEMM, "FLASHINFER_MOE_EP_DEEP_GEMM", "", {"FlashInferMoeEpExperts"}});
  edit::add_after(rules.aliases, "flashinfer_cutlass_afp8",
                  {"flashinfer_moe_ep_cutedsl", {FLASHINFER_MOE_EP_CUTEDSL}});
  edit::add_after(rules.aliases, "flashinfer_moe_ep_cutedsl",
                  {"flashinfer_moe_ep_mega_deep_gemm", {FLASHINFER_MOE_EP_DEEP_GEMM}});
  for (const Backend backend : {FLASHINFER_MOE_EP_CUTEDSL, FLASHINFER_MOE_EP_DEEP_GEMM}) {
    edit::converter(rules, Family::kGptOss, backend).supported = false;
  }
  edit::converter(rules, Family::kGptOss, CUTLASS_MXFP4_MXFP4).supported = false;
}

// fused_moe/config.py: the callers pass this switch to the converter, which then keeps gate and up
// apart. Only AITER's fused MoE honours it, and not for SiTU.
constexpr TargetCondition kAiterA4W4{
    "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4 and AITER MoE on, neither gfx1250 nor situ",
    [](const Target& t) { return arch_known(t) && !gfx1250(t) && !situ(t); },
    {{{"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4", python_int_is_nonzero}, kAiterOn, kAiterMoeOn}}};

bool int4_on_gfx942(const Target& t) {
  return t.arch.starts_with("gfx942") && knob_value(t, "aiter_weight") == "int4";
}

void change_layouts_0_32(RuleSet& rules) {
  constexpr std::string_view kGptOss =
      "the gpt_oss converter has no branch for this backend: loading stops with ValueError";
  constexpr std::string_view kBf16 =
      "the generic converter gives this backend BF16 weights, which the kernel quantizes again: "
      "there is no MXFP4 layout";
  constexpr Family kGeneric = Family::kGeneric;
  for (const Backend backend :
       {CUTLASS_MXFP4_MXFP4, FLASHINFER_MOE_EP_CUTEDSL, FLASHINFER_MOE_EP_DEEP_GEMM}) {
    edit::add_layouts(rules, {{backend, Family::kGptOss, {}, nullptr, kGptOss, "ValueError"}});
  }
  edit::add_layouts(rules, {{FLASHINFER_MOE_EP_DEEP_GEMM, kGeneric, {}, &kIdentityLayout},
                            {FLASHINFER_MOE_EP_CUTEDSL, kGeneric, {}, nullptr, kBf16}});
  edit::add_layouts(rules,
                    {{AITER_MXFP4_BF16, Family::kGeneric, kAiterA4W4, &kAiterBf16SeparatedLayout},
                     {AITER_MXFP4_BF16,
                      Family::kGeneric,
                      {"gfx942, aiter_weight=int4", int4_on_gfx942},
                      &kAiterInt4Layout}});
}

// On capability 9.0 Humming comes before Marlin, on 12.x Marlin before Triton.
void order_lists(RuleSet& rules) {
  const Condition on_hopper = all_of({platform_is(Platform::kCuda), capability_is(9, 0)});
  const Condition on_12 = all_of({platform_is(Platform::kCuda), capability_family(12)});
  std::vector<PriorityRow>& by_key = edit::row(rules.selectors, Selector::kGptOss).priorities;
  std::vector<Backend>& usual = edit::row(by_key, always().text).backends;
  edit::add_after(usual, FLASHINFER_CUTLASS_MXFP4_MXFP8, CUTLASS_MXFP4_MXFP4);
  std::vector<Backend> hopper = usual;
  edit::add_before(hopper, MARLIN, HUMMING);
  edit::add_after(usual, BATCHED_MARLIN, HUMMING);
  std::vector<Backend> blackwell = usual;
  edit::remove(blackwell, TRITON);
  edit::add_after(blackwell, BATCHED_MARLIN, TRITON);
  edit::add_before(by_key, always().text, {on_hopper, std::move(hopper)});
  edit::add_before(by_key, always().text, {on_12, std::move(blackwell)});

  std::vector<PriorityRow>& deepseek = edit::row(rules.selectors, Selector::kDeepseekV4).priorities;
  std::vector<Backend>& others = edit::row(deepseek, always().text).backends;
  std::vector<Backend> first = others;
  edit::add_before(first, MARLIN, HUMMING);
  edit::add_after(others, BATCHED_MARLIN, HUMMING);
  edit::add_before(deepseek, always().text, {on_hopper, std::move(first)});
}

void round_sizes(RuleSet& rules) {
  edit::add_before(rules.rounding, "B12X_*",
                   {{"FLASHINFER_MOE_EP_*",
                     [](const Target& t) {
                       return t.backend == FLASHINFER_MOE_EP_CUTEDSL ||
                              t.backend == FLASHINFER_MOE_EP_DEEP_GEMM;
                     }},
                    1,
                    1});
  edit::add_before(rules.rounding, "rocm",
                   {{"AITER_MXFP4_MXFP4 on rocm",
                     [](const Target& t) {
                       return t.backend == AITER_MXFP4_MXFP4 && t.platform == Platform::kRocm;
                     }},
                    256,
                    128});
}

void add_names_0_32(RuleSet& rules) {
  edit::add_before(rules.keys, "int8_per_channel_static",
                   {"nvfp4_per_token",
                    "QuantKey(u8,scale({fp8},dynamic,GroupShape(row=1, col=16)),"
                    "scale2(f32,dynamic,per_token),symmetric)"});
  edit::add(rules.keys,
            {"int4_per_group_32",
             "QuantKey(uint4b8,scale(f16,static,GroupShape(row=1, col=32)),symmetric)"});
  edit::add(rules.all2all_backends, "passthrough");
  edit::add_after(rules.option_names, "flashinfer_cutedsl", "flashinfer_moe_ep_cutedsl");
  edit::remove(rules.option_names, "flashinfer_moe_ep_mega_cutedsl");
  edit::add_after(rules.option_names, "aiter", "aiter_mega_moe");
}

}  // namespace

const Release kRelease0320 = {
    .name = "vllm-0.32.0",
    .date = "2026-10-18",
    .commit = "5df63a720",
    .pins = {{"flashinfer", "0.7.0.post1"},
             {"humming-kernels", "0.1.17"},
             {"ROCm/triton", "669b31acc", Platform::kRocm}},
    .changes =
        "falls back to bf16 activations; HUMMING listed, first on sm90; MARLIN before TRITON "
        "on sm12x, TRITON there by name; CUTLASS_MXFP4_MXFP4 and FLASHINFER_MOE_EP_*; the generic "
        "method serves compressed-tensors with dynamic FP8 activations",
    .apply =
        [](RuleSet& rules) {
          add_backends(rules);
          change_layouts_0_32(rules);
          change_humming_0_32(rules);
          order_lists(rules);
          round_sizes(rules);
          // Triton's classes know consumer Blackwell now; capability 11.0 comes with it.
          for (const std::string_view name : kTritonClasses) {
            edit::condition(rules, name, "device") = triton_device(13, gfx12_but_gfx1250());
          }
          rules.falls_back_without_key = true;
          edit::row(rules.selectors, Selector::kGptOss).own_key_in_list = true;
          edit::condition(rules, "AiterW4A16ExpertsMonolithic", "routing") =
              routing_in({"Renormalize", "RenormalizeNaive", "DeepseekV4", "DeepSeekV3"});
          add_names_0_32(rules);
          change_methods_0_32(rules);
        },
};

}  // namespace mxfp4
