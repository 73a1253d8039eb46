// vLLM 0.23.0 (fused_moe/oracle/mxfp4.py, fused_moe/config.py): AITER comes first for DeepSeek-V4 on
// ROCm; sigmoid gets routing methods of its own; Mori comes in two kinds.
#include <algorithm>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

}  // namespace

const Release kRelease0230 = {
    .name = "vllm-0.23.0",
    .version = "0.23.0",
    .date = "2026-06-15",
    .commit = "0fc695fc6",
    .pins = {{"flashinfer", "0.6.12"}, {"humming-kernels", "0.1.4"}},
    .changes = "AITER first for DeepSeek-V4; sigmoid routing; Mori's two kinds",
    .executed = "11,699 of 11,699 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0221,
    .apply =
        [](RuleSet& rules) {
          edit::selector(rules, Selector::kDeepseekV4).priorities.front().backends = {
              AITER_MXFP4_BF16, TRITON_UNFUSED};
          edit::expert_class(rules, "XPUExpertsMXFp4").name = "XPUExpertsMxFp4";
          edit::backend(rules, XPU).classes = {"XPUExpertsMxFp4"};
          edit::condition(rules, "XPUExpertsMxFp4", "activation") =
              activation_in({"silu", "gelu", "gelu_tanh", "swigluoai", "relu2_no_mul"});
          edit::insert_after(rules.all2all_backends, "mori",
                             std::string_view("mori_high_throughput"));
          edit::insert_after(rules.all2all_backends, "mori_high_throughput",
                             std::string_view("mori_low_latency"));
          edit::remove(rules.all2all_backends, std::string_view("mori"));
          const auto methods = r2026_08_17::routing_methods();
          rules.routing_methods.assign(methods.begin(), methods.end());
          const auto routing = r2026_08_17::routing();
          rules.routing.assign(routing.begin(), routing.end());
          // fused_moe/layer.py, _load_w13 and _load_w2: ranks begin at their unpadded size now.
          rules.loader.strides_by_checkpoint = true;
          humming_kernels_0_1_4(rules);
          // The generic converter keeps the rows of gate and up apart.
          std::erase_if(rules.layouts,
                        [](const LayoutRow& row) { return row.backend == AITER_MXFP4_BF16; });
          edit::add_layouts(rules,
                            {{AITER_MXFP4_BF16, Family::kGptOss, {}, &kAiterW4a16Layout},
                             {AITER_MXFP4_BF16, Family::kGeneric, {}, &kAiterBf16SeparatedLayout}});
        },
};

}  // namespace mxfp4
