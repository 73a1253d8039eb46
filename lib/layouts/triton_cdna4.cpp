// TRITON, TRITON_UNFUSED and AITER_TRITON_MXFP4_BF16 on gfx950: values as loaded, scales in CDNA4
// order, which older packages call GFX950MXScaleLayout. The reference scrambles sizes that are not
// multiples of 256, and does not check.
//
// Example: scale (n, s) = (53, 13) -> row 1, column 343.
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

Shape triton_cdna4_append_scale(Program& program, const TritonMatrix& m) {
  program.then(cdna4_scale_tiles(m.rows, m.columns, RowPairs::kKept));
  return {m.experts, m.rows / 32, 32 * m.columns};
}

std::vector<Output> triton_cdna4_outputs(const LayoutInput& input) {
  require_cdna4_sizes(kTritonCdna4Layout.id, input.loaded);
  return triton_outputs(input, kStridedSwizzle, kCdna4ScaleSwizzle);
}

std::vector<Output> triton_cdna4_k_interleaved_outputs(const LayoutInput& input) {
  require_cdna4_sizes(kTritonCdna4KInterleavedLayout.id, input.loaded);
  return triton_k_interleaved_outputs(kTritonCdna4KInterleavedLayout.id, input, kStridedSwizzle,
                                      kCdna4ScaleSwizzle);
}

std::vector<Output> triton_cdna4_row_interleaved_outputs(const LayoutInput& input) {
  require_cdna4_sizes(kTritonCdna4RowInterleavedLayout.id, input.loaded);
  return triton_row_interleaved_outputs(input, kStridedSwizzle, kCdna4ScaleSwizzle);
}

constexpr std::string_view kTritonCdna4Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, N/32, 32*S]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kTritonCdna4Formula =
    "value byte (n,c): as loaded\n"
    "scale (n,s): row n>>5, column 256*(s>>3) + 64*(s&3) + 4*(n&15) + 2*((s>>2)&1) + ((n>>4)&1)";
constexpr std::string_view kTritonCdna4KFormula =
    "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
    "value byte (n,c) and scale (n,s): as triton/cdna4";
constexpr std::string_view kRowFormula =
    "w13 first: row 2i+g takes row g*I+i, biases too\n"
    "value byte (n,c) and scale (n,s): as triton/cdna4";
constexpr std::string_view kTritonCdna4Source =
    "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";

}  // namespace

const TritonSwizzle kCdna4ScaleSwizzle = {
    "CDNA4MXScaleLayout", "CDNA4_SCALE", {}, triton_cdna4_append_scale, nullptr};

const Layout kTritonCdna4Layout = {
    .id = "triton/cdna4",
    .outputs_doc = kTritonCdna4Outputs,
    .formula = kTritonCdna4Formula,
    .preconditions = "H and I multiples of 256",
    .source = kTritonCdna4Source,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_cdna4_outputs,
};

const Layout kTritonCdna4KInterleavedLayout = {
    .id = "triton/cdna4-k-interleaved",
    .outputs_doc = kTritonCdna4Outputs,
    .formula = kTritonCdna4KFormula,
    .preconditions = "H and I multiples of 256",
    .source = kTritonCdna4Source,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_cdna4_k_interleaved_outputs,
};

const Layout kTritonCdna4RowInterleavedLayout = {
    .id = "triton/cdna4-row-interleaved",
    .outputs_doc = kTritonCdna4Outputs,
    .formula = kRowFormula,
    .preconditions = "H and I multiples of 256",
    .source =
        "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM 0.30.0 "
        "fused_moe/oracle/mxfp4.py",
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_cdna4_row_interleaved_outputs,
};

}  // namespace mxfp4
