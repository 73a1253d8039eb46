// FLASHINFER_CUTLASS_MXFP4_MXFP8 (compute capability 10.x, 12.x), gpt_oss family: up rows, then
// gate rows, and scales in the 128 x 4 tile order of block_scale_swizzle.hpp.
//
// Example, I = 128: w13 row 0 is loaded row 1 (up 0), row 128 is loaded row 0 (gate 0); its scale
// column 5 goes to byte ((128/128)*(S/4) + 1)*512 + 1 of the expert.
#include "lib/layouts/flashinfer_cutlass_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kCutlassMxfp8Id = "flashinfer/cutlass-mxfp8";

std::vector<Output> cutlass_mxfp8_outputs(const LayoutInput& input) {
  return cutlass_outputs(kCutlassMxfp8Id, input.loaded, rows_output, swizzled_scale_output);
}

}  // namespace

const Layout kFlashinferCutlassMxfp8Layout = {
    .id = kCutlassMxfp8Id,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: BF16 [E, N]",
    .formula =
        "w13 row 2i+g -> (1-g)*I + i\n"
        "scale (r,c): offset ((r/128)*(S/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4\n"
        "w13_bias: a NaN becomes 0x7FFF, F32 is rounded",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
        "quantization/fp4_quantization.py, quantization.cu (block_scale_interleave_kernel)",
    .outputs = cutlass_mxfp8_outputs,
};

}  // namespace mxfp4
