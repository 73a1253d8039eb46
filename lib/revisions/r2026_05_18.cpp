// vLLM a2c8fc6657 (2026-05-18), which the releases build on.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/r2026_05_18_layouts.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

RuleSet rules_of_2026_05_18() {
  return {
      .keys = edit::rows(r2026_05_18::keys()),
      .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
      .fp8_texts = edit::rows(r2026_05_18::fp8_texts()),
      .activations = edit::rows(r2026_05_18::activations()),
      .activation_aliases = edit::rows(r2026_05_18::activation_aliases()),
      .routing_methods = edit::rows(r2026_05_18::routing_methods()),
      .all2all_backends = edit::rows(r2026_05_18::all2all_backends()),
      .all2all_aliases = edit::rows(r2026_05_18::all2all_aliases()),
      .packages = edit::rows(r2026_05_18::packages()),
      .stock_packages = edit::rows(r2026_05_18::stock_packages()),
      .gated = told_gated(),
      .uses_all2all = r2026_05_18::uses_all2all(),
      .batched = r2026_05_18::batched(),
      .requirements = {},
      .classes = r2026_05_18::classes(),
      .backends = edit::rows(r2026_05_18::backends()),
      .aliases = edit::rows(r2026_05_18::aliases()),
      .replacements = edit::rows(r2026_05_18::replacements()),
      .option_names = edit::rows(r2026_05_18::option_names()),
      .selectors = edit::rows(r2026_05_18::selectors()),
      .messages = r2026_05_18::messages(),
      .callers = edit::rows(r2026_05_18::callers()),
      .routing = edit::rows(r2026_05_18::routing()),
      .online_shorthands = edit::rows(r2026_05_18::online_shorthands()),
      .converters = edit::rows(r2026_05_18::converters()),
      .kernel_settings = edit::rows(r2026_05_18::kernel_settings()),
      .load_notes = edit::rows(r2026_05_18::load_notes()),
      .all2all_hidden = edit::rows(r2026_05_18::all2all_hidden()),
      .all2all_hidden_refusal =
          {"ValueError",
           "Hidden Size {hidden} is greater than the maximum supported hidden "
           "size {largest}"},
      .rounding = edit::rows(r2026_05_18::rounding()),
      .layouts = edit::rows(r2026_05_18::layout_rows()),
      .defects = edit::rows(r2026_05_18::defect_rows()),
  };
}

}  // namespace

const Release kCommit20260518 = {
    .name = "vllm-2026-05-18",
    .version = "",
    .date = "2026-05-18",
    .commit = "a2c8fc6657",
    .pins = {{"flashinfer", "0.6.11.post2"},
             {"triton_kernels", "3.6.0"},
             {"AITER", "0.1.13"},
             {"humming-kernels", "0.1.0a1"}},
    .changes = "a commit of main between 0.21.0 and 0.22.0",
    .apply = [](RuleSet& rules) { rules = rules_of_2026_05_18(); },
};

}  // namespace mxfp4
