#include "lib/revisions/shared_experts.hpp"

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

Condition fusion_enabled() {
  return all_of({platform_is(Platform::kRocm), aiter_moe_enabled(kAiterDevicesWithGfx1250),
                 env_switch("VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS", false)});
}

Condition without_expert_parallel() { return none_of({expert_parallel_enabled()}); }

}  // namespace

void add_fused_shared_experts(RuleSet& rules) {
  rules.fused_shared.push_back(
      {.model_types = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25",
                       "glm_moe_dsa", "glm4_moe_lite", "axk1", "qwen3_next"},
       .when = fusion_enabled(),
       .if_mxfp4 = false});
}

void fuse_more_shared_experts(RuleSet& rules) {
  for (FusedSharedRow& row : rules.fused_shared) {
    for (const std::string_view model :
         {"glm4_moe", "minimax_m3", "minimax_m3_vl", "qwen3_5_moe"}) {
      row.model_types.push_back(model);
    }
  }
}

void fuse_equal_shared_experts(RuleSet& rules) {
  for (FusedSharedRow& row : rules.fused_shared) row.if_mxfp4 = true;
  rules.fused_shared.push_back(
      {.model_types = {"deepseek_v4", "deepseek_v41"},
       .when = all_of({fusion_enabled(), without_expert_parallel(), none_of({dp_above_one()})})});
}

// models/deepseek_v4/amd/model.py, _heterogeneous_shared_expert_enabled: V4-Pro's sizes.
void fuse_fp8_shared_expert(RuleSet& rules) {
  rules.fused_shared.push_back(
      {.model_types = {"deepseek_v4"},
       .when = all_of({fusion_enabled(), arch_contains("gfx950"), without_expert_parallel(),
                       none_of({eplb()}), tp_is(8), none_of({dp_above_one()}),
                       none_of({pcp_above_one()}), moe_backend_is("aiter"),
                       model_shape(384, 7168, 3072)}),
       .if_mxfp4 = false});
}

}  // namespace mxfp4
