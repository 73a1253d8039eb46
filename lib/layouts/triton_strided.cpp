// TRITON and TRITON_UNFUSED where no swizzle exists (CUDA below 9.0, ROCm other than gfx950, XPU):
// values and scales as loaded. The engine's view is [E, C, N] with strides (N C, 1, C).
//
// Example: k-interleaved, the scales 0 1 2 3 of a w13 row (H = 128) become 0 2 1 3.
// Row-interleaved, the rows 0 1 2 3 of w13 (I = 2: gate, gate, up, up) become 0 2 1 3.
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

Shape append_nothing(Program&, const TritonMatrix& m) { return {m.experts, m.rows, m.columns}; }

std::vector<Output> triton_strided_outputs(const LayoutInput& input) {
  return triton_outputs(input, kStridedSwizzle, kStridedSwizzle);
}

std::vector<Output> triton_strided_k_interleaved_outputs(const LayoutInput& input) {
  return triton_k_interleaved_outputs(kTritonStridedKInterleavedLayout.id, input, kStridedSwizzle,
                                      kStridedSwizzle);
}

std::vector<Output> triton_strided_row_interleaved_outputs(const LayoutInput& input) {
  return triton_row_interleaved_outputs(input, kStridedSwizzle, kStridedSwizzle);
}

constexpr std::string_view kTritonStridedOutputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kTritonStridedSource =
    "triton_kernels 3.6.0 layout_details/strided.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";

}  // namespace

const TritonSwizzle kStridedSwizzle = {"StridedLayout", "None", {}, append_nothing, nullptr};

const Layout kTritonStridedLayout = {
    .id = "triton/strided",
    .outputs_doc = kTritonStridedOutputs,
    .formula = "values and scales as loaded",
    .preconditions = "none",
    .source = kTritonStridedSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_strided_outputs,
};

const Layout kTritonStridedKInterleavedLayout = {
    .id = "triton/strided-k-interleaved",
    .outputs_doc = kTritonStridedOutputs,
    .formula = "w13: index d of the last axis takes (d>>1) + (d&1)*(n/2)",
    .preconditions = "H a multiple of 64",
    .source = kTritonStridedSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_strided_k_interleaved_outputs,
};

const Layout kTritonStridedRowInterleavedLayout = {
    .id = "triton/strided-row-interleaved",
    .outputs_doc = kTritonStridedOutputs,
    .formula = "w13: row 2i+g takes row g*I+i, biases too",
    .preconditions = "none",
    .source =
        "triton_kernels 3.6.0 layout_details/strided.py; vLLM 0.30.0 fused_moe/oracle/mxfp4.py",
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_strided_row_interleaved_outputs,
};

}  // namespace mxfp4
