// vLLM 0.22.0 and 0.22.1: main four days after the commit of 2026-05-18. XPU serves generic models.
#include <algorithm>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void change_layouts_0_22(RuleSet& rules) {
  for (const Backend backend :
       {EMULATION, NONE, CPU, FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8,
        AITER_MXFP4_FP8, AITER_MXFP4_MXFP4}) {
    edit::drop_layouts(rules, backend, Family::kGeneric);
    edit::add_layouts(rules, {edit::generic_refusal(backend, "TRTLLM, Triton, AITER, or XPU")});
  }
  edit::drop_layouts(rules, XPU, Family::kGeneric);
  std::erase_if(rules.layouts, [](const LayoutRow& row) { return row.backend == HUMMING; });
  edit::add_layouts(
      rules, {{AITER_MXFP4_FP8, Family::kGptOss, kGfx942OrGfx1250, &kAiterW4a8Fp8StridedLayout},
              {XPU, Family::kGeneric, {}, &kIdentityLayout},
              {HUMMING,
               {},
               {},
               nullptr,
               "its converter imports fused_moe.routed_experts, which this release lacks: loading "
               "stops with ModuleNotFoundError",
               "ModuleNotFoundError"}});
  edit::converter(rules, Family::kGeneric, XPU).supported = true;
}

}  // namespace

const Release kRelease0220 = {
    .name = "vllm-0.22.0",
    .version = "0.22.0",
    .date = "2026-05-29",
    .commit = "0b3ba88f1",
    .pins = {{"flashinfer", "0.6.11.post2"}, {"humming-kernels", "0.1.2"}},
    .changes = "as vllm-2026-05-18; XPU for generic models",
    .executed = "11,317 of 11,317 decisions with traces; on a CPU, bytes of layouts",
    .base = &kCommit20260518,
    .apply =
        [](RuleSet& rules) {
          change_layouts_0_22(rules);
          rules.loader.creates_biases = false;
          std::vector<PriorityRow>& lists = edit::selector(rules, Selector::kDeepseekV4).priorities;
          lists.insert(lists.end() - 1, {platform_is(Platform::kXpu), {XPU}});
          for (RoutingRow& row : rules.routing) {
            if (row.method == "Renormalize") row.method = "RenormalizeNaive";
          }
          edit::insert_after(rules.option_names, "flashinfer_cutedsl",
                             std::string_view("flashinfer_b12x"));
        },
};

const Release kRelease0221 = {
    .name = "vllm-0.22.1",
    .version = "0.22.1",
    .date = "2026-06-04",
    .commit = "0decac0d9",
    .pins = {{"flashinfer", "0.6.11.post2"}, {"humming-kernels", "0.1.2"}},
    .changes = "as 0.22.0",
    .executed = "11,317 of 11,317 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0220,
    .apply = [](RuleSet& /*rules*/) {},
};

}  // namespace mxfp4
