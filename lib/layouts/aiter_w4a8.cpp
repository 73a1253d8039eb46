// AITER_MXFP4_FP8 on gfx950 (weights of 4 bits, activations FP8 with static scales): the tensors of
// triton/cdna4, and each projection's input scales reduced to one. The reference warns when the
// input scales differ. Example: 0.25, 0.5, 0.25 -> 0.5, with the warning.
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"

namespace mxfp4 {
namespace {

std::vector<Output> aiter_w4a8_outputs(const LayoutInput& input) {
  require_input_scales(input.loaded);
  require_cdna4_sizes(kAiterW4a8Fp8Layout.id, input.loaded);
  std::vector<Output> result = triton_outputs(input, kStridedSwizzle, kCdna4ScaleSwizzle);
  append_input_scale_maxima(kAiterW4a8Fp8Layout.id, input.loaded, result);
  return result;
}

}  // namespace

const Layout kAiterW4a8Fp8Layout = {
    .id = "aiter/w4a8-fp8",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N/32, 32*S]\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded\n"
        "w13_input_scale, w2_input_scale: F32 []",
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): as triton/cdna4\n"
        "input scale: maximum over the experts, NaN if any is NaN",
    .preconditions = "input scales present; at least one expert; H and I multiples of 256",
    .source =
        "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
        "fused_moe/oracle/mxfp4.py",
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = aiter_w4a8_outputs,
    .check_data = check_input_scales,
};

}  // namespace mxfp4
