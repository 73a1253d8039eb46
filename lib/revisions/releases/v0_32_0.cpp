// vLLM 0.32.0 (fused_moe/oracle/mxfp4.py): the lists fall back to backends without a key; Humming is
// listed, first on capability 9.0; CUTLASS and FlashInfer's MoE-EP kernels become backends.
#include <algorithm>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/model_config.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/mega_moe.hpp"
#include "lib/revisions/method_choices.hpp"
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
  edit::copy_kernel_settings(rules, AITER_MXFP4_MXFP4, CUTLASS_MXFP4_MXFP4);
  for (const Backend backend : {FLASHINFER_MOE_EP_CUTEDSL, FLASHINFER_MOE_EP_DEEP_GEMM}) {
    edit::converter(rules, Family::kGptOss, backend).supported = false;
    rules.kernel_settings.push_back(
        {.backend = backend, .constructor = "direct", .activation_dtype = "nvfp4"});
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
  return t.arch.starts_with("gfx942") && aiter_weight(t) == "int4";
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

// oracle/mxfp4.py: the generic converter passes on what the checkpoint said; gpt-oss's passes on
// nothing.
void tell_humming_0_32(RuleSet& rules) {
  for (InputDtypeRow& row : rules.input_dtypes) row.checkpoint = row.family == Family::kGeneric;
}

// How a compressed-tensors config says that activations are quantized; empty for other configs.
// Throws Error::unsupported where its groups disagree.
std::string_view activation_of(const ModelConfig& config) {
  if (!config.quantization || config.quantization->name != "compressed-tensors") return {};
  if (config.quantization->activation == "several") {
    throw Error::unsupported(
        "the groups of quantization_config disagree about activations, and no group's targets name "
        "the experts: this release serves dynamic FP8 ones by another method");
  }
  return config.quantization->activation;
}

// compressed_tensors_moe.py: dynamic FP8 activations in the checkpoint take it to a method that
// derives from the generic one and differs only in its name for the tensors. Humming's converter gets
// the activations; the selector does not.
void serve_fp8_activations(RuleSet& rules) {
  CallerRow row = edit::row(rules.callers, "quant_method mxfp4, any other model_type");
  row.method = "CompressedTensorsW4A8Mxfp4MoEMethod";
  row.minimum_capability = 70;
  const auto add = [&](std::string_view text, auto holds, std::string_view key,
                       std::string_view dtype) {
    row.text = text;
    row.holds = holds;
    row.model_activation = key;
    row.input_dtype = dtype;
    edit::add_before(rules.callers, "compressed-tensors, 4-bit float, group 32, symmetric", row);
  };
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations by token",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_token"; }, "fp8_per_token",
      "float8e4m3");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in groups of 128",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_block_dynamic"; },
      "fp8_per_block_dynamic", "float8e4m3-group128");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in groups of 32",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_group_32"; }, "",
      "float8e4m3-group32");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in other groups",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_group"; }, "",
      "fp8_per_group");
  KernelSettingsRow settings = edit::kernel_settings(rules, EMULATION, "Mxfp4MoEMethod");
  settings.method = row.method;
  edit::add_kernel_settings(rules, settings);
}

// quantization/mxfp4.py, _use_k3_situ_aiter and _use_k3_situ_int4_gfx942: the method class serves
// Kimi-K3 on ROCm without the selector, whatever --moe-backend says. AITER's build is taken to know
// SiTU. gfx950 keeps the converter; on gfx942 the method converts by itself, with loss.
void serve_situ_directly(RuleSet& rules) {
  const auto on = [](std::string_view arch) {
    return all_of({aiter_moe_enabled(kAiterDevicesWithGfx1250), arch_contains(arch),
                   activation_in({"situ"}), situ_linear_beta()});
  };
  const std::vector<DirectRow> exceptions = {
      {on("gfx950"), AITER_MXFP4_BF16, "AiterExperts",
       "this method bypasses the oracle for SiTU on gfx950: moe_backend and override are ignored"},
      {all_of({on("gfx942"), weight_override_is("int4_per_group_32")}), AITER_MXFP4_BF16,
       "AiterExperts",
       "this method bypasses the oracle: on gfx942 it requantizes SiTU's experts from MXFP4 to "
       "int4, with loss; moe_backend is ignored",
       "aiter_weight", "int4"}};
  for (CallerRow& row : rules.callers) {
    if (row.family == Family::kGeneric && row.direct.empty()) row.exceptions = exceptions;
  }
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

void require_deepseek_v41(RuleSet& rules) {
  edit::add_first(
      rules.requirements,
      {"A4W4 of AITER",
       none_of({all_of({gated(), aiter_moe_enabled(kAiterDevicesWithGfx1250),
                        env_number("VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4", false),
                        none_of({model_type_in({"deepseek_v41", "deepseek_v41_text"})})})}),
       {"ValueError",
        "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4=1 only supports model_type in ('deepseek_v41', "
        "'deepseek_v41_text'), got {model_type}. Unset this env var for this model."}});
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
    .version = "0.32.0",
    .date = "2026-10-18",
    .commit = "5df63a720",
    .pins = {{"flashinfer", "0.7.0.post1"},
             {"humming-kernels", "0.1.17"},
             {"ROCm/triton", "669b31acc", Platform::kRocm}},
    .changes =
        "falls back to bf16 activations; HUMMING listed, first on sm90; MARLIN before TRITON "
        "on sm12x, TRITON there by name; CUTLASS_MXFP4_MXFP4 and FLASHINFER_MOE_EP_*; the generic "
        "method serves compressed-tensors with dynamic FP8 activations",
    .executed = "14,994 of 14,994 decisions with traces; on a CPU, bytes of layouts",
    .apply =
        [](RuleSet& rules) {
          add_backends(rules);
          change_layouts_0_32(rules);
          humming_kernels_0_1_17(rules);
          tell_humming_0_32(rules);
          order_lists(rules);
          round_sizes(rules);
          serve_fp8_activations(rules);
          serve_situ_directly(rules);
          // Triton's classes know consumer Blackwell now; capability 11.0 comes with it.
          for (const std::string_view name : kTritonClasses) {
            edit::condition(rules, name, "device") = triton_device(13, gfx12_but_gfx1250());
          }
          rules.falls_back_without_key = true;
          edit::row(rules.selectors, Selector::kGptOss).own_key_in_list = true;
          edit::condition(rules, "AiterW4A16ExpertsMonolithic", "routing") =
              routing_in({"Renormalize", "RenormalizeNaive", "DeepseekV4", "DeepSeekV3"});
          require_deepseek_v41(rules);
          add_names_0_32(rules);
          add_aiter_mega_moe(rules);
          ask_for_moe_ep(rules);
          ask_classes_afterwards(rules);
        },
};

}  // namespace mxfp4
