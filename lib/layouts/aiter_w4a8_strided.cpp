// AITER_MXFP4_FP8 where scales are not swizzled (world sizes above 2 on gfx950, other ROCm
// architectures): the tensors of triton/strided, and each projection's input scales reduced to one.
// Example: input scales 0.25, 0.5 -> 0.5.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"

namespace mxfp4 {
namespace {

std::vector<Output> aiter_w4a8_strided_outputs(const LayoutInput& input) {
  require_input_scales(input.loaded);
  std::vector<Output> result = triton_outputs(input, kStridedSwizzle, kStridedSwizzle);
  append_input_scale_maxima(kAiterW4a8Fp8StridedLayout.id, input.loaded, result);
  return result;
}

}  // namespace

const Layout kAiterW4a8Fp8StridedLayout = {
    .id = "aiter/w4a8-fp8-strided",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded\n"
        "w13_input_scale, w2_input_scale: F32 []",
    .formula =
        "values and scales as loaded\n"
        "input scale: maximum over the experts, NaN if any is NaN",
    .preconditions = "input scales present; at least one expert",
    .source =
        "triton_kernels layout_details/strided.py; vLLM 017e9f4448 fused_moe/oracle/mxfp4.py, "
        "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    .outputs = aiter_w4a8_strided_outputs,
    .check_data = check_input_scales,
};

}  // namespace mxfp4
