// Sources: models/deepseek_v4/nvidia/model.py (0.21.0: model_executor/models/deepseek_v4.py),
// models/deepseek_v4/amd/model.py and mega_moe.py, models/deepseek_v41/nvidia/model.py,
// models/kimi_k3/nvidia/model.py, fused_moe/deep_gemm_mega_moe.py of the releases that are named.
#include "lib/revisions/mega_moe.hpp"

#include <algorithm>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

constexpr std::string_view kDeepGemmMegaMoe = "deep_gemm_mega_moe";
constexpr std::string_view kNotImplemented = "NotImplementedError";
constexpr std::string_view kDeepseekClass = "DeepseekV4MegaMoEExperts";
constexpr std::string_view kPaddedText = "DEEP_GEMM_MEGA_MOE, any activation but situ";

// DeepGEMM's own limits, which every class checks when it is made.
std::vector<RequirementRow> kernel_limits() {
  return {
      {"device", capability_family(10), {kNotImplemented, "DeepGEMM MegaMoE requires SM100 GPUs."}},
      {"sizes",
       all_of({hidden_multiple_of(128), intermediate_multiple_of(128)}),
       {"ValueError",
        "DeepGEMM MegaMoE requires hidden and intermediate sizes to be multiples of 128."}}};
}

// Without redundant experts the engine's assertion has no words.
RequirementRow even_experts(bool redundant) {
  return {
      "even experts",
      experts_divide(redundant),
      {"AssertionError",
       redundant ? "n_physical_experts={physical_experts} must be divisible by "
                   "ep_size={ep_size}. Adjust num_redundant_experts."
                 : "{num_experts} experts are not divisible by {ep_size} expert-parallel ranks"}};
}

ModelBackendRow deepseek_row() {
  ModelBackendRow row{.moe_backend = kDeepGemmMegaMoe,
                      .model_types = {"deepseek_v4"},
                      .when = platform_is(Platform::kCuda),
                      .backend = DEEP_GEMM_MEGA_MOE,
                      .experts_class = kDeepseekClass,
                      .requirements = {}};
  row.requirements = {
      {"expert parallel",
       expert_parallel_enabled(),
       {kNotImplemented,
        "DeepSeek V4 MegaMoE currently requires expert parallel. Enable it with "
        "--enable-expert-parallel, or pick a different moe backend."}},
      {"scoring",
       scoring_is("sqrtsoftplus"),
       {kNotImplemented, "DeepSeek V4 MegaMoE currently supports sqrtsoftplus routing only."}},
      even_experts(false)};
  std::ranges::copy(kernel_limits(), std::back_inserter(row.requirements));
  return row;
}

ModelBackendRow kimi_row() {
  ModelBackendRow row{.moe_backend = kDeepGemmMegaMoe,
                      .model_types = {"kimi_k3"},
                      .when = platform_is(Platform::kCuda),
                      .backend = DEEP_GEMM_MEGA_MOE,
                      .experts_class = "KimiK3MegaMoEExperts",
                      .requirements = {}};
  row.requirements = {
      {"expert parallel",
       expert_parallel_enabled(),
       {kNotImplemented,
        "Kimi K3 MegaMoE requires expert parallel. Enable it with --enable-expert-parallel."}},
      {"activation",
       activation_in({"situ"}),
       {"ValueError", "Kimi K3 MegaMoE requires SITU activation."}},
      {"latent experts",
       latent_experts(),
       {"ValueError", "Kimi K3 MegaMoE requires latent MoE projections."}},
      {"grouped top-k",
       grouped_topk(),
       {"ValueError", "Kimi K3 MegaMoE requires grouped top-k routing."}},
      {"groups",
       one_expert_group(),
       {kNotImplemented, "Kimi K3 MegaMoE currently requires one expert group."}},
      {"even experts",
       experts_divide(false),
       {"ValueError",
        "Kimi K3 num_experts={num_experts} must be divisible by EP size {ep_size}."}}};
  std::ranges::copy(kernel_limits(), std::back_inserter(row.requirements));
  return row;
}

ModelBackendRow aiter_row() {
  ModelBackendRow row{.moe_backend = "aiter_mega_moe",
                      .model_types = {"deepseek_v4"},
                      .when = platform_is(Platform::kRocm),
                      .backend = AITER_MEGA_MOE,
                      .experts_class = "DeepseekV4AiterMegaMoEExperts",
                      .requirements = {}};
  row.requirements = {
      {"AITER",
       aiter_moe_enabled(kAiterDevicesWithGfx1250),
       {"ValueError",
        "--moe-backend aiter_mega_moe requires VLLM_ROCM_USE_AITER=1  and "
        "VLLM_ROCM_USE_AITER_MOE=1."}},
      {"device", arch_contains("gfx950"), {kNotImplemented, "AITER MegaMoE requires gfx950."}},
      {"ranks",
       all_of({expert_parallel_enabled(), tp_is(1)}),
       {kNotImplemented,
        "AITER MegaMoE requires data parallel attention with expert parallel MoE: "
        "--data-parallel-size N --enable-expert-parallel with TP=1 and PP=1."}},
      {"all-to-all",
       all2all_backend_in({"mori_high_throughput", "mori_low_latency"}),
       {"ValueError",
        "AITER MegaMoE runs on MoRI shmem; add --all2all-backend mori_high_throughput."}},
      {"EPLB", none_of({eplb()}), {kNotImplemented, "AITER MegaMoE does not support EPLB."}},
      // The class drops the last experts without a word.
      {"even experts",
       experts_divide(false),
       {"", "AITER MegaMoE drops experts: {num_experts} are not divisible by {ep_size} ranks"}}};
  return row;
}

// A model's kernel reads the sizes of the model: no rule of the oracle's rounds them.
void add_model_backend(RuleSet& rules, ModelBackendRow row, const Layout& layout) {
  const Backend backend = row.backend;
  if (find_model_backend(rules, backend) == nullptr) {
    rules.layouts.push_back({backend, Family::kGeneric, {}, &layout});
    const bool aiter = backend == AITER_MEGA_MOE;
    edit::add_first(rules.rounding,
                    {{backend_name(backend),
                      aiter ? [](const Target& t) { return t.backend == AITER_MEGA_MOE; }
                            : [](const Target& t) { return t.backend == DEEP_GEMM_MEGA_MOE; }},
                     1,
                     1});
  }
  rules.model_backends.push_back(std::move(row));
}

template <class Change>
void change_deepseek(RuleSet& rules, Change&& change) {
  for (ModelBackendRow& row : rules.model_backends) {
    if (row.experts_class == kDeepseekClass) change(row);
  }
}

}  // namespace

void add_deepseek_mega_moe(RuleSet& rules) {
  add_model_backend(rules, deepseek_row(), kDeepgemmMegaMoeLayout);
}

void repeat_mega_moe_experts(RuleSet& rules) {
  change_deepseek(rules, [](ModelBackendRow& row) {
    row.redundant_experts = true;
    edit::row(row.requirements, "even experts") = even_experts(true);
  });
}

void add_kimi_mega_moe(RuleSet& rules) {
  add_model_backend(rules, kimi_row(), kDeepgemmMegaMoeLayout);
}

// Kimi-K3's class pads nothing, and its activation tells it from DeepSeek's.
void add_deepseek_v41_mega_moe(RuleSet& rules) {
  change_deepseek(rules,
                  [](ModelBackendRow& row) { row.model_types.emplace_back("deepseek_v41"); });
  edit::add_first(
      rules.rounding,
      {{kPaddedText,
        [](const Target& t) { return t.backend == DEEP_GEMM_MEGA_MOE && t.activation != "situ"; }},
       1,
       512});
}

void require_normalized_mega_moe(RuleSet& rules) {
  edit::remove(rules.rounding, kPaddedText);
  change_deepseek(rules, [](ModelBackendRow& row) {
    edit::add_after(
        row.requirements, "scoring",
        {"norm_topk_prob",
         normalizes_weights(),
         {kNotImplemented, "DeepSeek V4 MegaMoE requires normalized top-k probabilities."}});
  });
}

void add_aiter_mega_moe(RuleSet& rules) {
  add_model_backend(rules, aiter_row(), kAiterBf16HalvesLayout);
}

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

}  // namespace mxfp4
