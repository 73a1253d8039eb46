// Kimi-K3 (vLLM 0.27.0, models/kimi_k3/nvidia/model.py, KimiMoE.__init__; models/kimi_k3/amd/linear.py)
// DeepSeek-V4.1 (0.30.0, models/deepseek_v41/quant_config.py, override_quantization_method) and
// Ling 3 (0.29.0); MiMo-V2.6 (0.24.0).
#include "lib/revisions/model_rows.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/core/model_config.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

constexpr TargetCondition kAitersSwitch{
    "activation situ, AITER_SITUV2_A8W4", situ, {{{"AITER_SITUV2_A8W4", reads_as_on}}}};

bool aiter_with_situ(const Target& t) { return t.backend == AITER_MXFP4_BF16 && situ(t); }
constexpr std::string_view kUnroundedSitu = "AITER_MXFP4_BF16, situ";

// A row of FP8 models whose experts the generic method serves, after the row of all its models.
void add_fp8_caller(RuleSet& rules, std::string_view text, bool (*holds)(const ModelConfig&)) {
  edit::add_after(rules.callers, "quant_method mxfp4, any other model_type",
                  {.text = text,
                   .holds = holds,
                   .method = "Mxfp4MoEMethod",
                   .selector = Selector::kDeepseekV4,
                   .family = Family::kGeneric,
                   .minimum_capability = 75,
                   .model_clamp_limit = true});
}

}  // namespace

// NVIDIA's class asks for expert parallelism first, AMD's does not.
void cut_kimi_k3(RuleSet& rules) {
  const auto is_kimi_k3 = [](const ModelConfig& c) { return c.model_type.starts_with("kimi_k3"); };
  rules.least_slices.push_back({"model_type kimi_k3", is_kimi_k3, Platform::kRocm, 256, true});
  rules.least_slices.push_back({"model_type kimi_k3", is_kimi_k3, {}, 256, false});
}

// vLLM 0.27.0, quantization/mxfp4.py, _use_k3_situ_aiter and _setup_kernel_k3_situ. AITER's build is
// taken to know SiTU.
void serve_situ_on_gfx950(RuleSet& rules) {
  const DirectRow direct{
      all_of({aiter_moe_enabled(kAiterDevices), arch_contains("gfx950"), activation_in({"situ"}),
              situ_linear_beta()}),
      AITER_MXFP4_BF16, "AiterExperts",
      "this method bypasses the oracle for SiTU on gfx950: moe_backend and override are ignored"};
  for (CallerRow& row : rules.callers) {
    if (row.family == Family::kGeneric && row.direct.empty()) row.exceptions = {direct};
  }
  edit::add_layouts(rules,
                    {{AITER_MXFP4_BF16, Family::kGeneric, kAitersSwitch, &kAiterBf16SituA8w4Layout},
                     {AITER_MXFP4_BF16, Family::kGeneric, kSitu, &kAiterBf16SituLayout}});
  edit::add_first(rules.rounding, {{kUnroundedSitu, aiter_with_situ}, 1, 1});
}

void leave_situ_to_selector(RuleSet& rules) {
  for (CallerRow& row : rules.callers) row.exceptions.clear();
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kAitersSwitch);
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kSitu);
  edit::remove(rules.rounding, kUnroundedSitu);
}

// It has DeepSeek-V4's experts under another model_type. Quark's exports of it are any Quark
// model's.
void serve_deepseek_v41(RuleSet& rules) {
  constexpr std::string_view kLike =
      "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4";
  CallerRow row = edit::row(rules.callers, kLike);
  row.text = "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v41, expert_dtype fp4";
  row.holds = [](const ModelConfig& c) {
    constexpr std::array<std::string_view, 3> kTypes = {"deepseek_v4_text", "deepseek_v41",
                                                        "deepseek_v41_text"};
    return c.quantization && !c.quantization->expert_dtype.empty() &&
           std::ranges::find(kTypes, c.model_type) != kTypes.end();
  };
  edit::add_after(rules.callers, kLike, std::move(row));
}

// models/bailing_moe_v3.py, quantization/fp8.py (Fp8Config.get_quant_method).
void serve_ling_3(RuleSet& rules) {
  add_fp8_caller(
      rules, "quant_method fp8, routed_experts_quant_method mxfp4", [](const ModelConfig& c) {
        return c.quantization && c.quantization->routed_experts == "routed_experts_quant_method";
      });
}

// quantization/fp8.py (Fp8Config.from_config, get_quant_method): any model class.
void serve_stored_mxfp4(RuleSet& rules) {
  add_fp8_caller(rules, "quant_method fp8, store_dtype mxfp4", [](const ModelConfig& c) {
    return c.quantization && c.quantization->routed_experts == "store_dtype";
  });
}

}  // namespace mxfp4
