// vLLM 017e9f4448 (2026-08-17). Tables that did not change are those of the revision before.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

RuleSet rules_of_2026_08_17() {
  return {
      .keys = edit::rows(r2026_08_17::keys()),
      .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
      .fp8_texts = edit::rows(r2026_05_18::fp8_texts()),
      .activations = edit::rows(r2026_08_17::activations()),
      .activation_aliases = edit::rows(r2026_05_18::activation_aliases()),
      .routing_methods = edit::rows(r2026_08_17::routing_methods()),
      .all2all_backends = edit::rows(r2026_08_17::all2all_backends()),
      .all2all_aliases = edit::rows(r2026_05_18::all2all_aliases()),
      .packages = edit::rows(r2026_08_17::packages()),
      .stock_packages = edit::rows(r2026_08_17::stock_packages()),
      .gated = gated_by_name(),
      .uses_all2all = r2026_08_17::uses_all2all(),
      .batched = r2026_05_18::batched(),
      .requirements = edit::rows(r2026_08_17::requirements()),
      .gemm_type = {.variable = "VLLM_HUMMING_MOE_GEMM_TYPE"},
      .classes = r2026_08_17::classes(),
      .backends = edit::rows(r2026_08_17::backends()),
      .aliases = edit::rows(r2026_05_18::aliases()),
      .replacements = edit::rows(r2026_05_18::replacements()),
      .option_names = edit::rows(r2026_08_17::option_names()),
      .selectors = edit::rows(r2026_08_17::selectors()),
      .messages = r2026_05_18::messages(),
      .callers = edit::rows(r2026_08_17::callers()),
      .routing = edit::rows(r2026_08_17::routing()),
      .online_shorthands = edit::rows(r2026_08_17::online_shorthands()),
      .converters = edit::rows(r2026_08_17::converters()),
      .kernel_settings = edit::rows(r2026_08_17::kernel_settings()),
      .load_notes = edit::rows(r2026_08_17::load_notes()),
      .loader = {.strides_by_checkpoint = true, .loads_biases = true},
      .all2all_hidden = edit::rows(r2026_08_17::all2all_hidden()),
      .all2all_hidden_refusal =
          {"ValueError",
           "Hidden Size {hidden} is greater than the maximum supported hidden "
           "size {largest}"},
      .rounding = edit::rows(r2026_08_17::rounding()),
      .layouts = edit::rows(r2026_08_17::layout_rows()),
      .defects = edit::rows(r2026_08_17::defect_rows()),
  };
}

}  // namespace

const Release kCommit20260817 = {
    .name = "vllm-2026-08-17",
    .version = "",
    .date = "2026-08-17",
    .commit = "017e9f4448",
    .pins = {{"flashinfer", "0.6.16.post3"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"ROCm/triton", "0f380657", Platform::kRocm},
             {"AITER", "0.1.19"},
             {"humming-kernels", "0.1.12"}},
    .changes = "a commit of main between 0.27.1 and 0.28.0",
    .apply = [](RuleSet& rules) { rules = rules_of_2026_08_17(); },
};

}  // namespace mxfp4
