// EMULATION with static activation scales: the loaded tensors as they are, and each projection's
// input scales, where there are some, reduced to one.
//
//   weights, scales, biases            the same dtype, shape and bytes; biases optional
//   w13_input_scale, w2_input_scale    F32 []   from F32 [E]; optional
//
// Input scale: the maximum over the experts, NaN if any is NaN. Example: 0.25, 0.5 -> 0.5.
//
// Preconditions: with input scales at least one expert.
// Source: vLLM 017e9f4448 fused_moe/oracle/mxfp4.py (EMULATION branch of the gpt_oss converter).
#include "lib/layouts/all.hpp"
#include "lib/layouts/input_scales.hpp"

namespace mxfp4 {
namespace {

std::vector<Output> input_maximum_outputs(const LayoutInput& input) {
  std::vector<Output> result = kIdentityLayout.outputs(input);
  if (input.loaded.input_scales) {
    append_input_scale_maxima(kIdentityInputMaximumLayout.id, input.loaded, result);
  }
  return result;
}

}  // namespace

const Layout kIdentityInputMaximumLayout = {
    .id = "identity/input-scale-maximum",
    .backends = "EMULATION (gpt_oss)",
    .outputs_doc =
        "weights, scales and biases as loaded\n"
        "w13_input_scale, w2_input_scale: F32 [], when loaded",
    .formula = "out = in\ninput scale: maximum over the experts",
    .preconditions = "with input scales at least one expert",
    .source = "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py",
    .kernel_library = "",
    .outputs = input_maximum_outputs,
    .check_data = check_input_scales,
};

}  // namespace mxfp4
