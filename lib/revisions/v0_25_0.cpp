// vLLM 0.25.0 and 0.25.1: 0.26.0 before emulation got sizes of its own and before Hopper's scales
// were padded to a multiple of four.
#include <algorithm>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

void undo_hopper_padding(RuleSet& rules) {
  for (LayoutRow& row : rules.layouts) {
    if (row.layout == &kTritonHopperS4Layout) row.layout = &kTritonHopperLayout;
    if (row.layout == &kTritonHopperS4KInterleavedLayout) {
      row.layout = &kTritonHopperKInterleavedLayout;
    }
  }
}

}  // namespace

const Release kRelease0250 = {
    .name = "vllm-0.25.0",
    .version = "0.25.0",
    .date = "2026-07-11",
    .commit = "dd10e03f9",
    .pins = {{"flashinfer", "0.6.13"}, {"humming-kernels", "0.1.10"}},
    .changes = "as 0.26.0, with other sizes for emulation and unpadded scales on Hopper",
    .executed = "12,335 of 12,335 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0260,
    .apply =
        [](RuleSet& rules) {
          undo_hopper_padding(rules);
          // quark_moe.py, maybe_roundup_sizes: emulation keeps the loaded sizes.
          for (CallerRow& row : rules.callers) {
            if (row.method == "QuarkOCP_MX_MoEMethod") row.never_rounds = Backend::EMULATION;
          }
          std::erase_if(rules.rounding,
                        [](const RoundingRow& row) { return row.when.text == "EMULATION"; });
          std::erase_if(rules.online_shorthands,
                        [](const OnlineShorthand& row) { return row.name == "nvfp4_per_token"; });
          // Context parallelism alone does not bring an all-to-all kernel yet.
          rules.uses_all2all =
              all_of({expert_parallel(), any_of({dp_above_one(), sp_above_one()})});
        },
};

const Release kRelease0251 = {
    .name = "vllm-0.25.1",
    .version = "0.25.1",
    .date = "2026-07-12",
    .commit = "752a3a504",
    .pins = {{"flashinfer", "0.6.13"}, {"humming-kernels", "0.1.10"}},
    .changes = "as 0.25.0",
    .executed = "12,335 of 12,335 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0250,
    .apply = [](RuleSet& /*rules*/) {},
};

}  // namespace mxfp4
