// vLLM 0.22.1.
#include "lib/revisions/edit.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

const Release kRelease0221 = {
    .name = "vllm-0.22.1",
    .version = "0.22.1",
    .date = "2026-06-04",
    .commit = "0decac0d9",
    .pins = {{"flashinfer", "0.6.11.post2"}, {"humming-kernels", "0.1.2"}},
    .changes = "no rule",
    .executed = "11,317 of 11,317 decisions with traces; on a CPU, bytes of layouts",
    .apply = [](RuleSet& rules) { edit::add_each(rules.model_classes, {"MellumForCausalLM"}); },
};

}  // namespace mxfp4
