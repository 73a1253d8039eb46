// vLLM 0.26.0 (fused_moe/oracle/mxfp4.py, quark/quark_moe.py): emulation has sizes of its own;
// scales for Hopper are padded to a multiple of four; context parallelism brings an
// all-to-all kernel.
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

void round_for_emulation(RuleSet& rules) {
  edit::add_first(
      rules.rounding,
      {{"EMULATION", [](const Target& t) { return t.backend == Backend::EMULATION; }}, 32, 32});
  // quark_moe.py, maybe_roundup_sizes: emulation kept the loaded sizes until now.
  for (const std::string_view text :
       {"Quark fp4 weights, bf16 activations", "Quark fp4 weights, static fp8 activations",
        "Quark fp4 weights, dynamic fp4 activations", "Quark fp4 weights, fp6 activations"}) {
    edit::row(rules.callers, text).never_rounds.reset();
  }
}

}  // namespace

const Release kRelease0260 = {
    .name = "vllm-0.26.0",
    .date = "2026-07-25",
    .commit = "ffd46bfab",
    .pins = {{"flashinfer", "0.6.14"}, {"humming-kernels", "0.1.10"}},
    .changes =
        "emulation rounds sizes to 32; padded scales of Triton on sm90; an all-to-all kernel "
        "with context parallelism",
    .apply =
        [](RuleSet& rules) {
          round_for_emulation(rules);
          edit::replace_layout(rules, kTritonHopperLayout, kTritonHopperS4Layout);
          edit::replace_layout(rules, kTritonHopperKInterleavedLayout,
                               kTritonHopperS4KInterleavedLayout);
          rules.uses_all2all = all_of(
              {expert_parallel(), any_of({dp_above_one(), pcp_above_one(), sp_above_one()})});
        },
};

}  // namespace mxfp4
