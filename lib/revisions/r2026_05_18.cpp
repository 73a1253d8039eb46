// The reference revision: vLLM a2c8fc6657 (2026-05-18), the default.
#include "lib/revisions/r2026_05_18_layouts.hpp"
#include "lib/revisions/rule_sets.hpp"

namespace mxfp4 {

const RuleSet kRules20260518 = {
    .name = "vllm-2026-05-18",
    .commit = "a2c8fc6657",
    .kernel_libraries =
        "flashinfer 0.6.11.post2, triton_kernels 3.6.0, AITER 0.1.13, humming-kernels 0.1.0a1",
    .rounding = {},
    .layouts = r2026_05_18::layout_rows(),
    .defects = r2026_05_18::defect_rows(),
};

}  // namespace mxfp4
