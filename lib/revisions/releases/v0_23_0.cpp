// vLLM 0.23.0 (fused_moe/oracle/mxfp4.py, fused_moe/config.py): AITER comes first for DeepSeek-V4
// on ROCm; sigmoid gets routing methods of its own; Mori comes in two kinds; Humming can be loaded.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/direct_rows.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_rows.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// get_routing_method_type: a score bias counts with renormalizing only, and sigmoid without it has
// a method of its own, whatever top_k is.
void route_by_sigmoid(RuleSet& rules) {
  using Facts = RoutingFacts;
  edit::add_before(rules.routing_methods, "Unspecified", {"Sigmoid", 8});
  edit::row(rules.routing_methods, "Unspecified").number = 9;
  edit::row(rules.routing, "score bias, sigmoid, expert groups") = {
      [](const Facts& f) {
        return f.score_bias && f.scoring == "sigmoid" && f.renormalize && f.expert_groups > 0;
      },
      "score bias, sigmoid, renormalize, expert groups", "DeepSeekV3"};
  edit::row(rules.routing, "score bias, sigmoid") = {
      [](const Facts& f) {
        return f.score_bias && f.scoring == "sigmoid" && f.renormalize &&
               f.scaling_factor.value_or(1.0) == 1.0;
      },
      "score bias, sigmoid, renormalize, routed scaling factor 1", "MiniMax2"};
  edit::remove(rules.routing, "sigmoid, top-1");
  edit::add_after(rules.routing, "sigmoid, renormalize",
                  {[](const Facts& f) { return f.scoring == "sigmoid"; }, "sigmoid", "Sigmoid"});
}

// humming-kernels 0.1.4 to 0.1.10.
constexpr std::string_view kKernelInt8 =
    "this Humming has no INT8 activations for MXFP4 weights: its kernel stops with "
    "NotImplementedError";
constexpr std::string_view kKernel4Bit =
    "with 4-bit activations this Humming takes no scales by 32: its kernel stops with "
    "AssertionError";

void load_humming(RuleSet& rules) {
  using namespace humming;
  std::vector<LayoutRow> rows = refused_by_kernels();
  rows.insert(
      rows.end(),
      {refused(kInt8, kKernelInt8, "NotImplementedError"),
       refused({"4-bit activations", is_fp4}, kKernel4Bit, "AssertionError"),
       packed({"FP8 activations", [](const Target& t) { return is_fp8(t) && cuda_known(t); }},
              kHummingFp8GlobalLayout),
       packed(kWgmma, kHummingWgmmaLayout), packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

// models/deepseek_v4.py: a rank holds EPLB's redundant experts, too. The assertion has words now.
void repeat_mega_moe_experts(RuleSet& rules) {
  ModelBackendRow& row = edit::row(rules.model_backends, "DeepseekV4MegaMoEExperts");
  row.redundant_experts = true;
  edit::row(row.requirements, "even experts") = {
      "even experts",
      experts_divide(true),
      {"AssertionError",
       "n_physical_experts={physical_experts} must be divisible by ep_size={ep_size}. Adjust "
       "num_redundant_experts."}};
}

}  // namespace

const Release kRelease0230 = {
    .name = "vllm-0.23.0",
    .date = "2026-06-15",
    .commit = "0fc695fc6",
    .pins = {{"flashinfer", "0.6.12"}, {"humming-kernels", "0.1.4"}},
    .changes = "AITER first for DeepSeek-V4; sigmoid routing; Mori's two kinds; HUMMING loads",
    .apply =
        [](RuleSet& rules) {
          route_by_sigmoid(rules);
          const Condition rocm = all_of({platform_is(Platform::kRocm), routing_in({"DeepseekV4"})});
          edit::row(edit::row(rules.selectors, Selector::kDeepseekV4).priorities, rocm.text)
              .backends = {AITER_MXFP4_BF16, TRITON_UNFUSED};
          edit::rename_class(rules, "XPUExpertsMXFp4", "XPUExpertsMxFp4");
          edit::condition(rules, "XPUExpertsMxFp4", "activation") =
              activation_in({"silu", "gelu", "gelu_tanh", "swigluoai", "relu2_no_mul"});
          edit::add_after(rules.all2all_backends, "mori", "mori_high_throughput");
          edit::add_after(rules.all2all_backends, "mori_high_throughput", "mori_low_latency");
          edit::remove(rules.all2all_backends, "mori");
          // fused_moe/layer.py, _load_w13 and _load_w2: ranks begin at their unpadded size now.
          rules.loader.strides_by_checkpoint = true;
          load_humming(rules);
          // The generic converter keeps the rows of gate and up apart.
          edit::drop_layouts(rules, AITER_MXFP4_BF16);
          edit::add_layouts(rules,
                            {{AITER_MXFP4_BF16, Family::kGptOss, {}, &kAiterW4a16Layout},
                             {AITER_MXFP4_BF16, Family::kGeneric, {}, &kAiterBf16SeparatedLayout}});
          repeat_mega_moe_experts(rules);
          edit::add_first(
              edit::row(rules.callers, "compressed-tensors, 4-bit float, group 32, symmetric")
                  .direct,
              xpu_as_loaded());
        },
};

}  // namespace mxfp4
