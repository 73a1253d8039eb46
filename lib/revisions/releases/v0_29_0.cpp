// vLLM 0.29.0 (fused_moe/oracle/mxfp4.py, fused_moe/b12x.py): the b12x backends; a backend that is
// asked for by name is asked with its own key; gfx950 emulates one shape of Qwen; flashinfer
// interleaves for capability 9.0 in another way.
#include "lib/core/model_config.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/direct_rows.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

Condition with_mxfp8(Condition condition) { return any_of({no_key(), std::move(condition)}); }

// The class's own checks of biases and of SiTU's parameters are left out: the generic method has
// neither.
ExpertClass b12x() {
  const std::vector<Check> own = {
      {"SiTU", none_of({activation_in({"situ"})}),
       "kernel supports only SiTU beta=4 and linear_beta=25"},
      {"activation with a key", with_mxfp8(none_of({activation_in({"swigluoai_uninterleave"})})),
       "kernel does not support swigluoai_uninterleave with W4A8"},
      {"sizes", intermediate_multiple_of(32),
       "MXFP4 requires the per-rank intermediate size to be divisible by 32"},
      {"activation with a key", with_mxfp8(activation_in({"silu", "situ"})),
       "MXFP4 W4A8 supports only SiLU and SiTU"},
      {"sizes", with_mxfp8(hidden_multiple_of(256)),
       "MXFP4 W4A8 requires hidden size divisible by 256 and per-rank intermediate size divisible "
       "by 32"},
  };
  return generic_class(
      {.name = "B12xExperts",
       .device = all_of({platform_is(Platform::kCuda), capability_family(12), package("b12x")}),
       .ungated = true,
       .activation = activation_in({"silu", "situ", "swigluoai_uninterleave", "relu2_no_mul"}),
       .scheme = none_or({"mxfp8"}),
       .parallel = none_of({expert_parallel(), all2all_in_use(), eplb()}),
       .routing = always()},
      own);
}

void add_b12x(RuleSet& rules) {
  edit::add(rules.packages, "b12x");
  edit::add(rules.classes, b12x());
  edit::add_backend_after(rules, NONE,
                          {B12X_MXFP4_MXFP8, "B12X_MXFP4_MXFP8", "mxfp8", {"B12xExperts"}});
  edit::add_backend_after(rules, B12X_MXFP4_MXFP8,
                          {B12X_MXFP4_BF16, "B12X_MXFP4_BF16", "", {"B12xExperts"}});
  edit::add_before(rules.aliases, "deep_gemm",
                   {.name = "b12x",
                    .candidates = {B12X_MXFP4_MXFP8, B12X_MXFP4_BF16},
                    .keeps_order_without_key = true,
                    .narrowed_when = env_number("VLLM_B12X_MOE_FP4_FORCE_A16", false),
                    .narrowed = {B12X_MXFP4_BF16}});
  edit::add_after(rules.option_names, "flashinfer_b12x", "b12x");
  edit::add_first(rules.rounding, {{"B12X_*",
                                    [](const Target& t) {
                                      return t.backend == B12X_MXFP4_MXFP8 ||
                                             t.backend == B12X_MXFP4_BF16;
                                    }},
                                   1,
                                   1});
  for (const Backend backend : {B12X_MXFP4_MXFP8, B12X_MXFP4_BF16}) {
    edit::converter(rules, Family::kGptOss, backend).supported = false;
    const std::string_view refusal =
        backend == B12X_MXFP4_BF16 ? "Unsupported mxfp4_backend: Mxfp4MoeBackend.B12X_MXFP4_BF16"
                                   : "Unsupported mxfp4_backend: Mxfp4MoeBackend.B12X_MXFP4_MXFP8";
    edit::add_layouts(rules, {{backend, Family::kGptOss, {}, nullptr, refusal, "ValueError"},
                              {backend, Family::kGeneric, {}, &kIdentityLayout}});
  }
}

// flashinfer 0.6.18 interleaves for capability 9.0 in another way.
void fold_cutlass(RuleSet& rules) {
  constexpr Backend kBackend = FLASHINFER_CUTLASS_MXFP4_BF16;
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    edit::drop_layouts(rules, kBackend, family);
  }
  edit::add_layouts(rules,
                    {{kBackend, Family::kGptOss, {}, &kFlashinferCutlassSm90FoldedLayout},
                     {kBackend, Family::kGeneric, {}, &kFlashinferCutlassSm90FoldedHalvesLayout}});
}

// Ling 3 (models/bailing_moe_v3.py; quantization/fp8.py, Fp8Config.get_quant_method).
void serve_ling_3(RuleSet& rules) {
  CallerRow row = edit::row(rules.callers, "quant_method fp8, store_dtype mxfp4");
  row.text = "quant_method fp8, routed_experts_quant_method mxfp4";
  row.holds = [](const ModelConfig& c) {
    return c.quantization && c.quantization->routed_experts == "routed_experts_quant_method";
  };
  edit::add_after(rules.callers, "quant_method mxfp4, any other model_type", std::move(row));
}

// compressed_tensors_moe_w4a4_mxfp4.py, inc_mxfp4_moe.py: --moe-backend b12x is asked of the oracle
// after all.
void ask_oracle_for_b12x(RuleSet& rules) {
  for (CallerRow& row : rules.callers) {
    if (chooses_itself(row)) edit::add_first(row.direct, oracle_row(moe_backend_is("b12x")));
  }
}

// quantization/utils/config_utils.py: only where they are quantized as the routed ones; DeepSeek-V4
// by Quark, too. models/deepseek_v4/amd/model.py and models/minimax_m3/amd/model.py ask the variable
// only.
void fuse_equal_shared_experts(RuleSet& rules) {
  for (FusedSharedRow& row : rules.fused_shared) {
    row.if_mxfp4 = true;
    std::erase_if(row.model_types,
                  [](std::string_view model) { return model.starts_with("minimax_m3"); });
  }
  rules.fused_shared.push_back(
      {.model_types = {"deepseek_v4", "deepseek_v41", "minimax_m3", "minimax_m3_vl"},
       .when = fuses_shared_experts_by_variable()});
}

// By checkpoint or user, before any backend's own key takes its place.
bool mxfp4_requested(const Question& q) {
  const Deployment& d = q.deployment;
  return (d.activation_override ? d.activation_override : d.model_activation) == "mxfp4";
}

}  // namespace

const Release kRelease0290 = {
    .name = "vllm-0.29.0",
    .date = "2026-09-09",
    .commit = "98dff2a81",
    .pins = {{"flashinfer", "0.6.18"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"humming-kernels", "0.1.12"}},
    .changes = "b12x; named backends are asked with their own key; Qwen3.8 emulated on gfx950",
    .apply =
        [](RuleSet& rules) {
          add_b12x(rules);
          fold_cutlass(rules);
          serve_ling_3(rules);
          edit::add_after(rules.option_names, "b12x", "flashinfer_moe_ep_mega_deep_gemm");
          edit::add_after(rules.option_names, "flashinfer_moe_ep_mega_deep_gemm",
                          "flashinfer_moe_ep_mega_cutedsl");
          SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
          by_key.own_key_when_named = true;
          by_key.gates = {{all_of({platform_is(Platform::kRocm),
                                   arch_contains("gfx950"),
                                   {"requested key mxfp4", mxfp4_requested},
                                   expert_parallel_shape(8, 512, 2560, 640)}),
                           EMULATION, ""}};
          edit::row(rules.selectors, Selector::kDeepseekV4).filters_named = true;
          rules.messages.no_variant.text =
              "moe_backend='{moe_backend}' does not support activation={key}";
          for (const std::string_view name : kHummingClasses) {
            edit::condition(rules, name, "scheme") =
                none_or({"mxfp4", "mxfp8", "fp8_per_token", "fp8_per_block_dynamic"});
          }
          ask_oracle_for_b12x(rules);
          fuse_equal_shared_experts(rules);
        },
};

}  // namespace mxfp4
