// vLLM 017e9f4448 (2026-08-17). Tables that did not change are those of the revision before.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/rule_sets.hpp"

namespace mxfp4 {

const RuleSet kRules20260817 = {
    .name = "vllm-2026-08-17",
    .commit = "017e9f4448",
    .kernel_libraries =
        "flashinfer 0.6.16.post3, triton_kernels 3.5.1 (CUDA), ROCm/triton 0f380657 (ROCm), "
        "AITER 0.1.19, humming-kernels 0.1.12",
    .keys = r2026_08_17::keys(),
    .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
    .fp8_texts = r2026_05_18::fp8_texts(),
    .activations = r2026_08_17::activations(),
    .activation_aliases = r2026_05_18::activation_aliases(),
    .routing_methods = r2026_08_17::routing_methods(),
    .all2all_backends = r2026_08_17::all2all_backends(),
    .all2all_aliases = r2026_05_18::all2all_aliases(),
    .packages = r2026_08_17::packages(),
    .stock_packages = r2026_08_17::stock_packages(),
    .gated = gated_by_name(),
    .uses_all2all = r2026_08_17::uses_all2all(),
    .batched = r2026_05_18::batched(),
    .requirements = r2026_08_17::requirements(),
    .backends = r2026_08_17::backends(),
    .aliases = r2026_05_18::aliases(),
    .replacements = r2026_05_18::replacements(),
    .option_names = r2026_08_17::option_names(),
    .selectors = r2026_08_17::selectors(),
    .messages = r2026_05_18::messages(),
    .callers = r2026_08_17::callers(),
    .routing = r2026_08_17::routing(),
    .online_shorthands = r2026_08_17::online_shorthands(),
    .converters = r2026_08_17::converters(),
    .quant_settings = r2026_08_17::quant_settings(),
    .load_notes = r2026_08_17::load_notes(),
    .loader = {.strides_by_checkpoint = true, .loads_biases = true},
    .all2all_hidden = r2026_08_17::all2all_hidden(),
    .all2all_hidden_refusal = {"ValueError",
                               "Hidden Size {hidden} is greater than the maximum supported hidden "
                               "size {largest}"},
    .rounding = r2026_08_17::rounding(),
    .layouts = r2026_08_17::layout_rows(),
    .defects = r2026_08_17::defect_rows(),
};

}  // namespace mxfp4
