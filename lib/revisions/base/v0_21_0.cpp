// vLLM 0.21.0, whole: the first release that is known here. Users cannot give an activation key
// yet, and no backend is left out for its key. releases/ holds what each later release changed.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

RuleSet rules_of_0_21_0() {
  return {
      .keys = base::keys(),
      .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
      .fp8_texts = base::fp8_texts(),
      .activations = base::activations(),
      .activation_aliases = base::activation_aliases(),
      .routing_methods = base::routing_methods(),
      .all2all_backends = base::all2all_backends(),
      .all2all_aliases = base::all2all_aliases(),
      .packages = base::packages(),
      .stock_packages = base::stock_packages(),
      .gated = known_gated(),
      .uses_all2all = base::uses_all2all(),
      .batched = base::batched(),
      .requirements = {},
      .classes = base::classes(),
      .backends = base::backends(),
      .aliases = base::aliases(),
      .replacements = base::replacements(),
      .option_names = base::option_names(),
      .selectors = base::selectors(),
      .model_backends = base::model_backends(),
      .messages = base::messages(),
      .callers = base::callers(),
      .routing = base::routing(),
      .takes_override = false,
      .converters = base::converters(),
      .method_knobs = {{"aiter_weight", "mxfp4"}},
      .load_notes = base::load_notes(),
      .fused_shared = base::fused_shared(),
      .loader = {.creates_biases = false},
      .all2all_hidden = base::all2all_hidden(),
      .all2all_hidden_refusal =
          {"ValueError",
           "Hidden Size {hidden} is greater than the maximum supported hidden "
           "size {largest}"},
      .rounding = base::rounding(),
      .layouts = base::layouts(),
      .defects = base::defects(),
  };
}

}  // namespace

const Release kRelease0210 = {
    .name = "vllm-0.21.0",
    .date = "2026-05-15",
    .commit = "ad7125a43",
    .pins = {{"flashinfer", "0.6.8.post1"}},
    .changes = "the oldest known here: no user's activation key, no CPU",
    .apply = [](RuleSet& rules) { rules = rules_of_0_21_0(); },
};

}  // namespace mxfp4
