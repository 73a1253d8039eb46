// FLASHINFER_CUTLASS_MXFP4_BF16 (compute capability 9.0), gpt_oss family, before flashinfer
// interleaved weights: the layout of flashinfer_cutlass_sm90.cpp with the weights in row order.
//
//   w13_weight         U8 [E, 2I, H/2]     w2_weight         U8 [E, H, I/2]
//   w13_weight_scale   U8 [E, H/128, 8I]   w2_weight_scale   U8 [E, I/128, 4H]
//   w13_bias           BF16 [E, 2I]        w2_bias           BF16 [E, H]
//
// w13 rows become all up, then all gate: row r < I is loaded row 2r+1, row r >= I loaded row
// 2(r-I). Scales: out[e, c/4, 4r + c%4] = in[e, r, c]. w2_weight and w2_bias are as loaded. In
// w13_bias a NaN becomes 0x7FFF; loaded as F32, it is rounded.
//
// Example: H = 256 has 8 scales a row; the scale (r, c) = (3, 6) goes to (1, 14).
//
// Preconditions: H % 128 == 0, I % 128 == 0; both biases.
// Source: vLLM 0.21.0 fused_moe/oracle/mxfp4.py, gpt_oss converter.
#include "lib/layouts/all.hpp"
#include "lib/layouts/flashinfer_cutlass_common.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kCutlassScalesId = "flashinfer/cutlass-sm90-scales";

std::vector<Output> cutlass_scales_outputs(const LayoutInput& input) {
  return cutlass_outputs(kCutlassScalesId, input.loaded, rows_output, sm90_scale_output);
}

}  // namespace

const Layout kFlashinferCutlassSm90ScalesLayout = {
    .id = kCutlassScalesId,
    .backends = "FLASHINFER_CUTLASS_MXFP4_BF16, vLLM 0.21.0",
    .outputs_doc =
        "w13_weight U8 [E, 2I, H/2], w2_weight U8 [E, H, I/2]\n"
        "w13_weight_scale U8 [E, H/128, 8I], w2_weight_scale U8 [E, I/128, 4H]\n"
        "w13_bias BF16 [E, 2I], w2_bias BF16 [E, H]",
    .formula =
        "w13 row r < I takes loaded row 2r+1, row r >= I loaded row 2(r-I)\n"
        "scale (r, c) goes to (c/4, 4r + c%4)\n"
        "w13_bias: NaN becomes 0x7FFF",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source = "vLLM 0.21.0 fused_moe/oracle/mxfp4.py, gpt_oss converter",
    .kernel_library = "",
    .outputs = cutlass_scales_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
