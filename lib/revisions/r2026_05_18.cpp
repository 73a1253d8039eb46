// vLLM a2c8fc6657 (2026-05-18), which the releases build on.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_05_18_layouts.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

template <class Rows>
auto rows(const Rows& table) {
  return std::vector(table.begin(), table.end());
}

RuleSet whole() {
  return {
      .keys = rows(r2026_05_18::keys()),
      .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
      .fp8_texts = rows(r2026_05_18::fp8_texts()),
      .activations = rows(r2026_05_18::activations()),
      .activation_aliases = rows(r2026_05_18::activation_aliases()),
      .routing_methods = rows(r2026_05_18::routing_methods()),
      .all2all_backends = rows(r2026_05_18::all2all_backends()),
      .all2all_aliases = rows(r2026_05_18::all2all_aliases()),
      .packages = rows(r2026_05_18::packages()),
      .stock_packages = rows(r2026_05_18::stock_packages()),
      .gated = told_gated(),
      .uses_all2all = r2026_05_18::uses_all2all(),
      .batched = r2026_05_18::batched(),
      .requirements = {},
      .classes = r2026_05_18::classes(),
      .backends = rows(r2026_05_18::backends()),
      .aliases = rows(r2026_05_18::aliases()),
      .replacements = rows(r2026_05_18::replacements()),
      .option_names = rows(r2026_05_18::option_names()),
      .selectors = rows(r2026_05_18::selectors()),
      .messages = r2026_05_18::messages(),
      .callers = rows(r2026_05_18::callers()),
      .routing = rows(r2026_05_18::routing()),
      .online_shorthands = rows(r2026_05_18::online_shorthands()),
      .converters = rows(r2026_05_18::converters()),
      .kernel_settings = rows(r2026_05_18::kernel_settings()),
      .load_notes = rows(r2026_05_18::load_notes()),
      .all2all_hidden = rows(r2026_05_18::all2all_hidden()),
      .all2all_hidden_refusal =
          {"ValueError",
           "Hidden Size {hidden} is greater than the maximum supported hidden "
           "size {largest}"},
      .rounding = rows(r2026_05_18::rounding()),
      .layouts = rows(r2026_05_18::layout_rows()),
      .defects = rows(r2026_05_18::defect_rows()),
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
    .apply = [](RuleSet& rules) { rules = whole(); },
};

}  // namespace mxfp4
