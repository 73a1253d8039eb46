// FLASHINFER_CUTLASS_MXFP4_BF16 (compute capability 9.0), gpt_oss family, before flashinfer
// interleaved weights: the layout of flashinfer_cutlass_sm90.cpp with the weights in row order.
//
// Example: H = 256 has 8 scales a row; the scale (r, c) = (3, 6) goes to (1, 14).
#include "lib/layouts/flashinfer_cutlass_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kCutlassScalesId = "flashinfer/cutlass-sm90-scales";

std::vector<Output> cutlass_scales_outputs(const LayoutInput& input) {
  return cutlass_outputs(kCutlassScalesId, input.loaded, rows_output, sm90_scale_output);
}

}  // namespace

const Layout kFlashinferCutlassSm90ScalesLayout = {
    .id = kCutlassScalesId,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K/128, 4N]\n"
        "w13_bias, w2_bias: BF16 [E, N]",
    .formula =
        "w13 row 2i+g -> (1-g)*I + i\n"
        "scale (r,c): (c/4, 4r + c%4)\n"
        "w13_bias: a NaN becomes 0x7FFF, F32 is rounded",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source = "vLLM 0.21.0 fused_moe/oracle/mxfp4.py, gpt_oss converter",
    .outputs = cutlass_scales_outputs,
};

}  // namespace mxfp4
