// Kernels that a model's own class takes for a value of --moe-backend without the oracle, and
// shared experts that AMD's kernels run beside the routed ones, in vLLM 0.21.0. Sources:
// model_executor/models/deepseek_v4.py, _aiter_ops.py (is_fusion_moe_shared_experts_enabled).
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::base {

// "device" and "sizes" are DeepGEMM's own limits, which the class checks when it is made.
std::vector<ModelBackendRow> model_backends() {
  constexpr std::string_view kNotImplemented = "NotImplementedError";
  ModelBackendRow row{.moe_backend = "deep_gemm_mega_moe",
                      .model_types = {"deepseek_v4"},
                      .when = platform_is(Platform::kCuda),
                      .backend = Backend::DEEP_GEMM_MEGA_MOE,
                      .experts_class = "DeepseekV4MegaMoEExperts",
                      .requirements = {}};
  row.requirements = {
      {"expert parallel",
       expert_parallel_enabled(),
       {kNotImplemented,
        "DeepSeek V4 MegaMoE currently requires expert parallel. Enable it with "
        "--enable-expert-parallel, or pick a different moe backend."}},
      {"scoring",
       {"scoring_func sqrtsoftplus",
        [](const Question& q) { return q.deployment.scoring_func == "sqrtsoftplus"; }},
       {kNotImplemented, "DeepSeek V4 MegaMoE currently supports sqrtsoftplus routing only."}},
      {"even experts",
       experts_divide(false),
       {"AssertionError",
        "{num_experts} experts are not divisible by {ep_size} expert-parallel ranks"}},
      {"device", capability_family(10), {kNotImplemented, "DeepGEMM MegaMoE requires SM100 GPUs."}},
      {"sizes",
       all_of({hidden_multiple_of(128), intermediate_multiple_of(128)}),
       {"ValueError",
        "DeepGEMM MegaMoE requires hidden and intermediate sizes to be multiples of 128."}}};
  return {std::move(row)};
}

// Whatever the checkpoint's quantization of them is.
std::vector<FusedSharedRow> fused_shared() {
  return {{.model_types = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25",
                           "glm_moe_dsa", "glm4_moe_lite", "axk1", "qwen3_next"},
           .when = fuses_shared_experts(),
           .if_mxfp4 = false}};
}

}  // namespace mxfp4::base
