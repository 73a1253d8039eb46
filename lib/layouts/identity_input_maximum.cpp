// EMULATION with static activation scales: the loaded tensors as they are, and each projection's
// input scales, where there are some, reduced to one. Example: 0.25, 0.5 -> 0.5.
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"

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
    .outputs_doc =
        "w13_weight, w2_weight, w13_weight_scale, w2_weight_scale: as loaded\n"
        "w13_bias, w2_bias: as loaded, when loaded\n"
        "w13_input_scale, w2_input_scale: F32 [], when loaded",
    .formula = "out = in\ninput scale: maximum over the experts, NaN if any is NaN",
    .preconditions = "with input scales at least one expert",
    .source =
        "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py, EMULATION branch of the gpt_oss converter",
    .outputs = input_maximum_outputs,
    .check_data = check_input_scales,
};

}  // namespace mxfp4
