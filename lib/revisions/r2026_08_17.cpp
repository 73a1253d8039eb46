// vLLM 017e9f4448 (2026-08-17). Tables that did not change are those of the revision before.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

template <class Rows>
auto rows(const Rows& table) {
  return std::vector(table.begin(), table.end());
}

RuleSet whole() {
  return {
      .keys = rows(r2026_08_17::keys()),
      .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
      .fp8_texts = rows(r2026_05_18::fp8_texts()),
      .activations = rows(r2026_08_17::activations()),
      .activation_aliases = rows(r2026_05_18::activation_aliases()),
      .routing_methods = rows(r2026_08_17::routing_methods()),
      .all2all_backends = rows(r2026_08_17::all2all_backends()),
      .all2all_aliases = rows(r2026_05_18::all2all_aliases()),
      .packages = rows(r2026_08_17::packages()),
      .stock_packages = rows(r2026_08_17::stock_packages()),
      .gated = gated_by_name(),
      .uses_all2all = r2026_08_17::uses_all2all(),
      .batched = r2026_05_18::batched(),
      .requirements = rows(r2026_08_17::requirements()),
      .gemm_type = {.variable = "VLLM_HUMMING_MOE_GEMM_TYPE"},
      .classes = r2026_08_17::classes(),
      .backends = rows(r2026_08_17::backends()),
      .aliases = rows(r2026_05_18::aliases()),
      .replacements = rows(r2026_05_18::replacements()),
      .option_names = rows(r2026_08_17::option_names()),
      .selectors = rows(r2026_08_17::selectors()),
      .messages = r2026_05_18::messages(),
      .callers = rows(r2026_08_17::callers()),
      .routing = rows(r2026_08_17::routing()),
      .online_shorthands = rows(r2026_08_17::online_shorthands()),
      .converters = rows(r2026_08_17::converters()),
      .kernel_settings = rows(r2026_08_17::kernel_settings()),
      .load_notes = rows(r2026_08_17::load_notes()),
      .loader = {.strides_by_checkpoint = true, .loads_biases = true},
      .all2all_hidden = rows(r2026_08_17::all2all_hidden()),
      .all2all_hidden_refusal =
          {"ValueError",
           "Hidden Size {hidden} is greater than the maximum supported hidden "
           "size {largest}"},
      .rounding = rows(r2026_08_17::rounding()),
      .layouts = rows(r2026_08_17::layout_rows()),
      .defects = rows(r2026_08_17::defect_rows()),
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
    .apply = [](RuleSet& rules) { rules = whole(); },
};

}  // namespace mxfp4
