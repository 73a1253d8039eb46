// Kimi-K3 (vLLM 0.27.0, models/kimi_k3/nvidia/model.py, KimiMoE.__init__; models/kimi_k3/amd/linear.py)
// DeepSeek-V4.1 (0.30.0, models/deepseek_v41/quant_config.py, override_quantization_method) and
// Ling 3 (0.29.0); MiMo-V2.6 (0.24.0).
#include "lib/revisions/model_rows.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/core/error.hpp"
#include "lib/core/model_config.hpp"

namespace mxfp4 {
namespace {

// A row of FP8 models whose experts the generic method serves, after the row of all its models.
void add_fp8_caller(RuleSet& rules, std::string_view text, bool (*holds)(const ModelConfig&)) {
  const auto like =
      std::ranges::find(rules.callers, std::string_view("quant_method mxfp4, any other model_type"),
                        &CallerRow::text);
  if (like == rules.callers.end()) throw Error::internal("no caller serves generic models");
  rules.callers.insert(like + 1, {.text = text,
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

// Its experts are those of DeepSeek-V4 under another model_type. Quark's exports of it are any Quark
// model's.
void serve_deepseek_v41(RuleSet& rules) {
  const auto like = std::ranges::find_if(rules.callers, [](const CallerRow& row) {
    return row.text ==
           "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4";
  });
  if (like == rules.callers.end()) throw Error::internal("no caller serves DeepSeek-V4");
  CallerRow row = *like;
  row.text = "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v41, expert_dtype fp4";
  row.holds = [](const ModelConfig& c) {
    constexpr std::array<std::string_view, 3> kTypes = {"deepseek_v4_text", "deepseek_v41",
                                                        "deepseek_v41_text"};
    return c.quantization && !c.quantization->expert_dtype.empty() &&
           std::ranges::find(kTypes, c.model_type) != kTypes.end();
  };
  rules.callers.insert(like + 1, std::move(row));
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
