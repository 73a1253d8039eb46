// The reference revision: vLLM a2c8fc6657 (2026-05-18), the default.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_05_18_layouts.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/rule_sets.hpp"

namespace mxfp4 {

const RuleSet kRules20260518 = {
    .name = "vllm-2026-05-18",
    .commit = "a2c8fc6657",
    .kernel_libraries =
        "flashinfer 0.6.11.post2, triton_kernels 3.6.0, AITER 0.1.13, humming-kernels 0.1.0a1",
    .keys = r2026_05_18::keys(),
    .weight_key_text = "QuantKey(u8,scale(u8,static,GroupShape(row=1, col=32)),symmetric)",
    .fp8_texts = r2026_05_18::fp8_texts(),
    .activations = r2026_05_18::activations(),
    .activation_aliases = r2026_05_18::activation_aliases(),
    .routing_methods = r2026_05_18::routing_methods(),
    .all2all_backends = r2026_05_18::all2all_backends(),
    .all2all_aliases = r2026_05_18::all2all_aliases(),
    .packages = r2026_05_18::packages(),
    .stock_packages = r2026_05_18::stock_packages(),
    .gated = told_gated(),
    .uses_all2all = r2026_05_18::uses_all2all(),
    .batched = r2026_05_18::batched(),
    .requirements = {},
    .backends = r2026_05_18::backends(),
    .aliases = r2026_05_18::aliases(),
    .replacements = r2026_05_18::replacements(),
    .option_names = r2026_05_18::option_names(),
    .selectors = r2026_05_18::selectors(),
    .messages = r2026_05_18::messages(),
    .callers = r2026_05_18::callers(),
    .routing = r2026_05_18::routing(),
    .online_shorthands = r2026_05_18::online_shorthands(),
    .converters = r2026_05_18::converters(),
    .quant_settings = r2026_05_18::quant_settings(),
    .load_notes = r2026_05_18::load_notes(),
    .all2all_hidden = r2026_05_18::all2all_hidden(),
    .all2all_hidden_refusal = {"ValueError",
                               "Hidden Size {hidden} is greater than the maximum supported hidden "
                               "size {largest}"},
    .rounding = r2026_05_18::rounding(),
    .layouts = r2026_05_18::layout_rows(),
    .defects = r2026_05_18::defect_rows(),
};

}  // namespace mxfp4
