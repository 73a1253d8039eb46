// vLLM 0.23.0 (fused_moe/oracle/mxfp4.py, fused_moe/config.py): AITER comes first for DeepSeek-V4 on
// ROCm; sigmoid gets routing methods of its own; Mori comes in two kinds; Humming can be loaded.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/mega_moe.hpp"
#include "lib/revisions/method_choices.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// get_routing_method_type: a score bias counts with renormalizing only, and sigmoid without it has a
// method of its own, whatever top_k is.
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

}  // namespace

const Release kRelease0230 = {
    .name = "vllm-0.23.0",
    .version = "0.23.0",
    .date = "2026-06-15",
    .commit = "0fc695fc6",
    .pins = {{"flashinfer", "0.6.12"}, {"humming-kernels", "0.1.4"}},
    .changes = "AITER first for DeepSeek-V4; sigmoid routing; Mori's two kinds; HUMMING loads",
    .executed = "11,699 of 11,699 decisions with traces; on a CPU, bytes of layouts",
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
          humming_kernels_0_1_4(rules);
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
