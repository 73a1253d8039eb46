// vLLM 0.22.0 (fused_moe/oracle/mxfp4.py): XPU serves generic models; Humming cannot be loaded.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_rows.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void serve_generic_models_on_xpu(RuleSet& rules) {
  edit::drop_layouts(rules, XPU, Family::kGeneric);
  edit::add_layouts(rules, {{XPU, Family::kGeneric, {}, &kIdentityLayout}});
  edit::reword_generic_refusals(rules, "TRTLLM, Triton, AITER, or XPU");
  edit::converter(rules, Family::kGeneric, XPU).supported = true;
  edit::add_before(edit::row(rules.selectors, Selector::kDeepseekV4).priorities, always().text,
                   {platform_is(Platform::kXpu), {XPU}});
}

}  // namespace

const Release kRelease0220 = {
    .name = "vllm-0.22.0",
    .date = "2026-05-29",
    .commit = "0b3ba88f1",
    .pins = {{"flashinfer", "0.6.11.post2"}, {"humming-kernels", "0.1.2"}},
    .changes = "XPU for generic models; HUMMING cannot be loaded",
    .apply =
        [](RuleSet& rules) {
          serve_generic_models_on_xpu(rules);
          edit::add_layouts(rules, {{AITER_MXFP4_FP8, Family::kGptOss, kGfx942OrGfx1250,
                                     &kAiterW4a8Fp8StridedLayout}});
          humming::refuse_all(rules,
                              "its converter imports fused_moe.routed_experts, which this release "
                              "lacks: loading stops with ModuleNotFoundError",
                              "ModuleNotFoundError");
          rules.loader.creates_biases = false;
          edit::row(rules.routing, "softmax, renormalize").method = "RenormalizeNaive";
          edit::add_after(rules.option_names, "flashinfer_cutedsl", "flashinfer_b12x");
        },
};

const Release kRelease0221 = {
    .name = "vllm-0.22.1",
    .date = "2026-06-04",
    .commit = "0decac0d9",
    .pins = {{"flashinfer", "0.6.11.post2"}, {"humming-kernels", "0.1.2"}},
    .changes = "no rule",
};

}  // namespace mxfp4
