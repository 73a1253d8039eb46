// vLLM 0.33.0 (fused_moe/oracle/mxfp4.py, fused_moe/experts/*.py): AITER's Triton kernel for fp4
// activations on gfx1250; LoRA on TRTLLM when asked for by name; the exception for Qwen3.8 is gone.
#include <fmt/format.h>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

ExpertClass aiter_w4a4() {
  return generic_class(
      {.name = "AiterW4A4ExpertsMonolithic",
       .monolithic = true,
       .device = aiter_on({"gfx1250"}),
       .activation = activation_in({"swigluoai", "swigluoai_uninterleave", "silu"}),
       .scheme = key_in({"mxfp4"}),
       .parallel = monolithic_parallel(),
       .routing = routing_in(
           {"Renormalize", "RenormalizeNaive", "DeepseekV4", "DeepSeekV3", "MiniMax2"})});
}

ExpertClass trtllm_lora() {
  return generic_class({.name = "TrtLlmMxfp4LoRAExperts",
                        .device = all_of({platform_is(Platform::kCuda), capability_family(10),
                                          package("flashinfer")}),
                        .activation = activation_in({"swigluoai", "silu"}),
                        .scheme = no_key(),
                        .parallel = monolithic_parallel(),
                        .routing = always(),
                        .lora = true});
}

// The kernel's epilogue for these activations wants gate and up rows in turns.
bool swigluoai(const Target& t) { return t.activation.starts_with("swigluoai"); }

bool activation_not_known(const Target& t) { return t.activation.empty(); }

void change_aiter(RuleSet& rules) {
  edit::rename_class(rules, "AiterExperts", "AiterMxfp4Experts");
  edit::add(rules.classes, aiter_w4a4());
  edit::add_backend_after(rules, AITER_MXFP4_MXFP4,
                          {AITER_TRITON_MXFP4_MXFP4,
                           "AITER_TRITON_MXFP4_MXFP4",
                           "mxfp4",
                           {"AiterW4A4ExpertsMonolithic"}});
  edit::add(edit::row(rules.aliases, "aiter").candidates, AITER_TRITON_MXFP4_MXFP4);
  edit::add_after(rules.aliases, "aiter_mxfp4_fp8",
                  {"aiter_triton_mxfp4_mxfp4", {AITER_TRITON_MXFP4_MXFP4}});
  edit::add_after(rules.option_names, "aiter_triton_mxfp4_bf16", "aiter_triton_mxfp4_mxfp4");
  constexpr std::string_view kAsks =
      "the order of w13's rows depends on the activation, which neither the input nor a flag says: "
      "give --activation NAME";
  edit::add_layouts(rules, {{AITER_TRITON_MXFP4_MXFP4,
                             Family::kGeneric,
                             {"activation not known", activation_not_known},
                             nullptr,
                             kAsks,
                             {}},
                            {AITER_TRITON_MXFP4_MXFP4,
                             {},
                             {"activation swigluoai or swigluoai_uninterleave", swigluoai},
                             &kAiterTritonW4a4RowInterleavedLayout},
                            {AITER_TRITON_MXFP4_MXFP4, {}, {}, &kAiterTritonW4a4Layout}});
  edit::add(rules.defects,
            {"rows interleaved twice",
             [](const DefectFacts& f) {
               return f.target.backend == AITER_TRITON_MXFP4_MXFP4 && swigluoai(f.target) &&
                      f.order == W13Order::kInterleaved;
             },
             "the converter of AITER_TRITON_MXFP4_MXFP4 interleaves w13's gate and up rows, which "
             "this checkpoint stores interleaved already, so gate and up rows end up mixed",
             ""});
  edit::condition(rules, "AiterW4A16ExpertsMonolithic", "parallel") = monolithic_parallel();
  edit::condition(rules, "AiterW4A16ExpertsMonolithic", "hash routing") = always();
}

// quantization/utils/mxfp4_utils.py, _swizzle_mxfp4: on gfx1250 AITER tiles the scales first.
void tile_scales_on_gfx1250(RuleSet& rules) {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  constexpr Backend kAiter = AITER_TRITON_MXFP4_BF16;
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kGfx1250);
  edit::add_layouts(rules, {{TRITON, kGptOss, kGfx1250, &kTriton38Gfx1250Layout},
                            {TRITON, kGeneric, kGfx1250, &kTriton38Gfx1250KInterleavedLayout},
                            {TRITON_UNFUSED, {}, kGfx1250, &kTriton38Gfx1250Layout},
                            {kAiter, kGptOss, kGfx1250, &kTriton38Gfx1250Layout},
                            {kAiter, kGeneric, kGfx1250, &kTriton38Gfx1250RowInterleavedLayout},
                            {AITER_MXFP4_FP8, {}, kGfx1250, &kAiterW4a8Triton38Gfx1250Layout},
                            {AITER_MXFP4_BF16, kGeneric, kGfx1250, &kTriton38Gfx1250Layout}});
}

// oracle/mxfp4.py, _humming_input_schema: both converters ask for the user's key.
void tell_humming_0_33(RuleSet& rules) {
  static constexpr KeyTypeRow kTypes[] = {
      {"fp8_per_token", "float8e4m3"},
      {"mxfp8", "float8e4m3"},
      {"fp8_per_block_dynamic", "float8e4m3-group128"},
      {"mxfp4", "float4e2m1"},
      {"int8_per_group_32", "int8"},
  };
  static constexpr TakenTypeRow kTaken[] = {
      {"mxfp8", "CUDA capability 9.x", [](const Target& t) { return t.arch.starts_with("sm9"); },
       "float8e4m3-group128"}};
  for (InputDtypeRow& row : rules.input_dtypes) {
    row.override = true;
    row.types = kTypes;
    if (row.family == Family::kGeneric) row.taken = kTaken;
  }
  // The generic selector asks for neither key, so the converter is the first to find them at odds.
  edit::add(rules.load_notes, {"activations at odds",
                               [](const LoadFacts& f) {
                                 const Deployment& d = f.question.deployment;
                                 return f.decision.backend == HUMMING &&
                                        f.family == Family::kGeneric && f.caller != nullptr &&
                                        !f.caller->input_dtype.empty() && d.activation_override &&
                                        d.activation_override != d.model_activation;
                               },
                               "Humming's converter finds the checkpoint's activations and "
                               "quantization_config.moe.activation at odds: loading stops with "
                               "ValueError",
                               "", /*stops=*/true});
}

// models/deepseek_v4/quant_config.py and models/deepseek_v41/quant_config.py, get_quant_method: the
// method gets a key for its converter.
void quantize_deepseek_activations(RuleSet& rules) {
  for (const std::string_view model : {"deepseek_v4", "deepseek_v41"}) {
    CallerRow& row = edit::row(
        rules.callers,
        fmt::format("quant_method fp8 or deepseek_v4_fp8, model_type {}, expert_dtype fp4", model));
    row.model_activation = "mxfp8";
    row.input_dtype = "float8e4m3";
  }
}

void add_lora(RuleSet& rules) {
  edit::add(rules.classes, trtllm_lora());
  edit::row(rules.backends, FLASHINFER_TRTLLM_MXFP4_BF16).lora_classes = {"TrtLlmMxfp4LoRAExperts"};
  edit::row(rules.backends, FLASHINFER_TRTLLM_MXFP4_MXFP8).lora_refusal = {
      "ValueError",
      "Mxfp4 MoE backend '{value}' does not support the deployment configuration since expert LoRA "
      "is not supported with MXFP8 activations; use moe_backend='flashinfer_trtllm'."};
}

// fused_moe/deep_gemm_mega_moe.py: one class for all models; LoRA is refused by name.
void refuse_lora_with_mega_moe(RuleSet& rules) {
  for (ModelBackendRow& row : rules.model_backends) {
    edit::add_first(row.requirements,
                    {"LoRA",
                     none_of({lora()}),
                     {"ValueError",
                      "LoRA is not supported with moe_backend='{moe_backend}'. Disable LoRA or "
                      "select a MoE backend that supports LoRA."}});
    if (row.backend == DEEP_GEMM_MEGA_MOE) row.experts_class = "DeepGemmMegaMoEExperts";
  }
}

// router/routing_simulator_router.py, modular_kernel.py: a simulated routing leaves the model's method
// as the classes see it; without logits of its own it leaves out those that route by themselves.
void simulate_beside_routing(RuleSet& rules) {
  rules.simulates_beside_routing = true;
  const Condition own_logits = none_of({env_is_one_of(kRoutingVariable, {"normal_routing"})});
  for (ExpertClass& row : rules.classes) {
    if (!row.monolithic) continue;
    edit::add_before(
        row.checks, "routing",
        {"simulated routing", own_logits, "kernel does not support routes adjusted after routing"});
  }
}

// quantization/quark/quark_moe.py: the class that the oracle chose stays.
void keep_quarks_class(RuleSet& rules) {
  for (CallerRow& row : rules.callers) {
    if (row.method == "QuarkOCP_MX_MoEMethod") row.first_class_only = false;
  }
}

// fused_moe/expert_substitution.py, SubstitutedRoutedExperts.
void refuse_replaced_experts(RuleSet& rules) {
  edit::add(rules.load_notes,
            {"replaced experts",
             [](const LoadFacts& f) { return f.question.deployment.replaced_experts; },
             "config.json has constants for experts, which the engine serves unquantized only: "
             "loading stops with NotImplementedError",
             "", /*stops=*/true});
}

}  // namespace

const Release kRelease0330 = {
    .name = "vllm-0.33.0",
    .date = "2026-11-02",
    .commit = "4ba787ec9",
    .pins = {{"flashinfer", "0.7.2.post1"},
             {"humming-kernels", "0.1.19"},
             {"ROCm/triton", "669b31acc", Platform::kRocm}},
    .changes = "AITER_TRITON_MXFP4_MXFP4 on gfx1250; LoRA on FLASHINFER_TRTLLM_MXFP4_BF16 by name",
    .apply =
        [](RuleSet& rules) {
          change_aiter(rules);
          tile_scales_on_gfx1250(rules);
          add_lora(rules);
          tell_humming_0_33(rules);
          quantize_deepseek_activations(rules);
          edit::row(rules.selectors, Selector::kGptOss).gates.clear();
          edit::condition(rules, "CPUExpertsMxfp4", "activation") =
              activation_in({"silu", "swigluoai", "gelu", "gelu_tanh"});
          edit::add_before(rules.keys, "int4_per_group_32",
                           {"int8_per_group_32",
                            "QuantKey(i8,scale(f32,dynamic,GroupShape(row=1, col=32)),symmetric)"});
          refuse_lora_with_mega_moe(rules);
          simulate_beside_routing(rules);
          refuse_replaced_experts(rules);
          keep_quarks_class(rules);
        },
};

}  // namespace mxfp4
