// vLLM 0.28.0: humming-kernels 0.1.12, and DeepGEMM's order of scales for capability 12.x.
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

const Release kRelease0280 = {
    .name = "vllm-0.28.0",
    .version = "0.28.0",
    .date = "2026-08-26",
    .commit = "2cf0a6915",
    .pins = {{"flashinfer", "0.6.16.post3"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"humming-kernels", "0.1.12"}},
    .changes = "layouts of HUMMING; DEEPGEMM_MXFP4 on sm12x",
    .executed = "14,363 of 14,363 decisions with traces; on a CPU, bytes of layouts",
    .apply =
        [](RuleSet& rules) {
          humming_kernels_0_1_12(rules);
          // See kNoDeepgemmOn12.
          edit::drop_layouts(rules, Backend::DEEPGEMM_MXFP4, kCapability12);
        },
};

}  // namespace mxfp4
