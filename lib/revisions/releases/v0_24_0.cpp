// vLLM 0.24.0 (fused_moe/oracle/mxfp4.py, fused_moe/config.py, fused_moe/experts/*.py): no variable
// overrides the lists any more; the last try on ROCm is the unfused Triton kernel; DeepGEMM's
// scales are packed; amd-quark and DeepEP's second version.
#include "lib/core/model_config.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/direct_rows.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void add_names(RuleSet& rules) {
  edit::add_after(
      rules.keys, "fp8_per_token",
      {"fp8_per_channel_static", "QuantKey({fp8},scale(f32,static,per_channel),symmetric)"});
  edit::add_after(rules.activations, "swigluoai", "swigluoai_uninterleave");
  edit::add_after(rules.all2all_backends, "deepep_low_latency", "deepep_v2");
  edit::add_after(rules.all2all_hidden, "deepep_high_throughput", {"deepep_v2", 256});
  edit::add(rules.packages, "quark");
  edit::add(edit::row(rules.stock_packages, Platform::kCuda).packages, "humming");
  edit::add(edit::row(rules.stock_packages, Platform::kRocm).packages, "quark");
  edit::add_after(rules.option_names, "aiter", "flydsl");
}

// fused_moe/config.py: assertions before the selection.
void require(RuleSet& rules) {
  rules.gated = gated_by_name();
  const Condition no_mori = not_over({"mori_high_throughput", "mori_low_latency"});
  edit::add(rules.requirements,
            {"Mori",
             any_of({no_mori, all_of({aiter_moe_enabled(kAiterDevices), gated()})}),
             {"AssertionError", "Mori needs to be used with aiter fused_moe for now."}});
  edit::add(rules.requirements,
            {"Mori, shared experts",
             any_of({no_mori, none_of({fuses_shared_experts()})}),
             {"AssertionError",
              "Mori does not support fusion shared expert now. Turn it off by setting "
              "VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS=0"}});
  edit::add(rules.requirements,
            {"gated",
             any_of({gated(), platform_is(Platform::kCuda), platform_is(Platform::kXpu),
                     platform_is(Platform::kRocm)}),
             {"NotImplementedError",
              "is_act_and_mul=False is supported only for CUDA, XPU and ROCm for now"}});
}

void change_classes_0_24(RuleSet& rules) {
  edit::condition(rules, "DeepGemmFP4Experts", "device") =
      all_of({platform_is(Platform::kCuda), env_number("VLLM_USE_DEEP_GEMM", true),
              package("deep_gemm"), any_of({capability_family(10), capability_family(12)})});
  edit::condition(rules, "DeepGemmFP4Experts", "activation") =
      activation_in({"silu", "swiglustep", "situ"});
  for (const std::string_view name :
       {"TrtLlmMxfp4ExpertsMonolithic", "TrtLlmMxfp4ExpertsModular"}) {
    edit::condition(rules, name, "activation") =
        any_of({activation_in({"swigluoai", "silu"}),
                all_of({activation_in({"situ"}), package("flashinfer_situ")})});
  }
  edit::condition(rules, "FlashInferExperts", "activation") =
      activation_in({"silu", "gelu_tanh", "relu2_no_mul", "swigluoai"});
  edit::condition(rules, "AiterW4A8ExpertsMonolithic", "device") =
      all_of({aiter_enabled(kAiterDevices), arch_contains("gfx950")});
  edit::condition(rules, "UnfusedOAITritonExperts", "activation") =
      activation_in({"silu", "gelu", "swigluoai", "swiglustep", "swigluoai_uninterleave"});
  edit::condition(rules, "XPUExpertsMxFp4", "scheme") = none_or({"mxfp4"});
  // Importing Humming's classes does not need its package any more.
  BackendRow& humming = edit::row(rules.backends, HUMMING);
  humming.required_package = {};
  humming.import_failure = {};
}

void select_without_variables(RuleSet& rules) {
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  by_key.env_overrides.clear();
  const Condition cuda_or_rocm =
      any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)});
  ExhaustedRow& refusal = edit::row(by_key.exhausted, cuda_or_rocm.text);
  refusal.when = platform_is(Platform::kCuda);
  edit::add_before(
      by_key.exhausted, platform_is(Platform::kCuda).text,
      {.when = platform_is(Platform::kRocm), .last_try = ForcedTry{always(), TRITON_UNFUSED, ""}});
}

void serve_checkpoints_0_24(RuleSet& rules) {
  edit::row(rules.callers, "compressed-tensors, 4-bit float, group 32, symmetric").direct = {
      {all_of({platform_is(Platform::kCuda), capability_at_least(10, 0), capability_below(12, 0)}),
       CUTLASS_MXFP4_MXFP4, "CutlassExpertsMxfp4",
       "this method bypasses the oracle: from capability 10.0 to below 12.0 it runs CUTLASS "
       "MXFP4xMXFP4 experts with their own preparation"},
      xpu_as_loaded(),
      no_marlin_repack(),
      {always(), MARLIN, "MarlinExperts",
       "this method bypasses the oracle: Marlin's own preparation, no rounding; moe_backend and "
       "override are ignored"}};
}

// quantization/fp8.py (Fp8Config.from_config, get_quant_method): FP8 models of any class that store
// their routed experts as MXFP4, as MiMo-V2.6 does.
void serve_stored_mxfp4(RuleSet& rules) {
  edit::add_after(rules.callers, "quant_method mxfp4, any other model_type",
                  {.text = "quant_method fp8, store_dtype mxfp4",
                   .holds =
                       [](const ModelConfig& c) {
                         return c.quantization && c.quantization->routed_experts == "store_dtype";
                       },
                   .method = "Mxfp4MoEMethod",
                   .selector = Selector::kDeepseekV4,
                   .family = Family::kGeneric,
                   .minimum_capability = 75});
}

// What stops the engine after a successful selection: some of it is checked before now, and EPLB is
// refused by two methods only.
void change_notes(RuleSet& rules) {
  for (const std::string_view name :
       {"mori", "no backend", "converter of CPU", "layer", "humming helper", "CPU operators"}) {
    edit::remove(rules.load_notes, name);
  }
  LoadNoteRow& converter = edit::row(rules.load_notes, "converter");
  converter.holds = [](const LoadFacts& f) {
    return f.caller != nullptr && f.caller->direct.empty() && f.converter != nullptr &&
           !f.converter->supported;
  };
  converter.fixed_in = "";
  edit::row(rules.load_notes, "EPLB").holds = [](const LoadFacts& f) {
    return f.caller != nullptr && f.question.parallel.enable_eplb &&
           (f.caller->method == "GptOssMxfp4MoEMethod" ||
            f.caller->method == "CompressedTensorsW4A4Mxfp4MoEMethod" ||
            f.caller->method == "INCMxfp4MoEMethod");
  };
  edit::add(rules.load_notes,
            {"AITER's class",
             [](const LoadFacts& f) {
               return f.decision.backend == AITER_MXFP4_BF16 &&
                      f.decision.experts_class == "AiterW4A16ExpertsMonolithic" &&
                      f.question.deployment.arch.find("gfx950") != std::string::npos;
             },
             "the converter looks at the architecture only and writes the layout of AiterExperts, "
             "whatever class was chosen",
             ""});
}

constexpr TargetCondition kNoSwizzle{
    "CUDA capability below 9.0, other ROCm, gfx950 with a larger world, other platforms",
    no_swizzle};

void change_layouts_0_24(RuleSet& rules) {
  constexpr Family kGptOss = Family::kGptOss;
  for (const Backend backend : {TRITON, TRITON_UNFUSED}) {
    edit::replace_condition(rules, backend, kGfx950, kCdna4);
    edit::replace_condition(rules, backend, kNoSwizzleInAnyWorld, kNoSwizzle);
  }
  edit::replace_layout(rules, kDeepgemmF32Layout, kDeepgemmPackedLayout);
  for (const Backend backend : {AITER_MXFP4_FP8, AITER_MXFP4_MXFP4, XPU}) {
    edit::drop_layouts(rules, backend);
  }
  edit::drop_layouts(rules, CPU, kNoCpuKernels);
  constexpr std::string_view kExpected = "TRTLLM, Triton, AITER, or XPU";
  edit::add_layouts(rules, {kNoDeepgemmOn12,
                            edit::generic_refusal(AITER_MXFP4_FP8, kExpected),
                            {AITER_MXFP4_FP8, {}, kCdna4, &kAiterW4a8Fp8Layout},
                            {AITER_MXFP4_FP8, {}, kArchKnown, &kAiterW4a8Fp8StridedLayout},
                            edit::generic_refusal(AITER_MXFP4_MXFP4, kExpected),
                            {AITER_MXFP4_MXFP4, {}, {}, &kAiterW4a4Layout},
                            {XPU, {}, {}, &kIdentityLayout},
                            {CPU, kGptOss, kNoCpuKernels, nullptr, kNoCpuKernelsRefusal}});
}

void change_defects(RuleSet& rules) {
  edit::remove(rules.defects, "generic AITER_MXFP4_BF16");
  edit::row(rules.defects, "gpt_oss halves").fixed_in = "";
  edit::add_after(rules.defects, "gpt_oss halves",
                  {"gfx1250 tiles",
                   [](const DefectFacts& facts) {
                     return facts.target.backend == AITER_MXFP4_BF16 &&
                            facts.target.family == Family::kGptOss &&
                            facts.target.arch.starts_with("gfx1250");
                   },
                   "the gpt_oss converter writes the tiles of gfx950 here, which the only class of "
                   "AITER_MXFP4_BF16 on gfx1250, AiterW4A16ExpertsMonolithic, cannot read",
                   ""});
  edit::row(rules.defects, "sm90 w13").text =
      "the sm90 kernel of triton_kernels (measured with 3.6.0) misreads w13 when the hidden size "
      "is not a multiple of 64";
  edit::row(rules.defects, "sm90 w2").text =
      "the sm90 kernel of triton_kernels (measured with 3.6.0) misreads w2 when the intermediate "
      "size is not a multiple of 64";
}

}  // namespace

const Release kRelease0240 = {
    .name = "vllm-0.24.0",
    .date = "2026-06-29",
    .commit = "ee0da84ab",
    .pins = {{"flashinfer", "0.6.12"}, {"humming-kernels", "0.1.6"}},
    .changes =
        "no variable overrides the lists; TRITON_UNFUSED is ROCm's last try; packed scales "
        "of DeepGEMM, which has none for sm12x; deepep_v2; no swizzle on gfx950 in larger "
        "worlds",
    .apply =
        [](RuleSet& rules) {
          add_names(rules);
          require(rules);
          change_classes_0_24(rules);
          select_without_variables(rules);
          serve_checkpoints_0_24(rules);
          serve_stored_mxfp4(rules);
          change_notes(rules);
          change_layouts_0_24(rules);
          change_defects(rules);
        },
};

}  // namespace mxfp4
