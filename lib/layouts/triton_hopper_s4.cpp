// TRITON and TRITON_UNFUSED on capability 9.0, with the scale columns first padded to a multiple of
// 4: otherwise the layouts of triton_hopper.cpp.
//
// Example: H = 2880 has S = 90, padded 92; the scale (n, s) = (413, 3) goes to row 9, column 119.
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

// With padded columns the kernel's reads of four groups at a time end inside the tensor.
const TritonSwizzle& scale_swizzle() {
  static const TritonSwizzle kSwizzle = [] {
    TritonSwizzle swizzle = kHopperScaleSwizzle;
    swizzle.column_multiple = 4;
    swizzle.slack_bytes = nullptr;
    return swizzle;
  }();
  return kSwizzle;
}

std::vector<Output> triton_hopper_s4_outputs(const LayoutInput& input) {
  return triton_outputs(input, kHopperValueSwizzle, scale_swizzle());
}

std::vector<Output> triton_hopper_s4_k_interleaved_outputs(const LayoutInput& input) {
  return triton_k_interleaved_outputs(kTritonHopperS4KInterleavedLayout.id, input,
                                      kHopperValueSwizzle, scale_swizzle());
}

constexpr std::string_view kTritonHopperS4Outputs =
    "w13_weight, w2_weight: U8 [E, up(N,16)/4, 4*up(C,32)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,256)/32, 32*up(S,4)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel option to set: split_k=1";
constexpr std::string_view kTritonHopperS4Formula =
    "value byte (n,c): as triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0: row 8*(n/256) + ((n>>4)&7), column "
    "64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + 2*(s&1) + ((n>>3)&1)";
constexpr std::string_view kTritonHopperS4KFormula =
    "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
    "value byte (n,c) and scale (n,s): as triton/hopper-s4";
constexpr std::string_view kTritonHopperS4Source =
    "triton_kernels 3.5.1 layout_details/hopper_value.py, hopper_scale.py; vLLM 017e9f4448 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonHopperS4Library = "triton_kernels 3.5.1";

}  // namespace

const Layout kTritonHopperS4Layout = {
    .id = "triton/hopper-s4",
    .outputs_doc = kTritonHopperS4Outputs,
    .formula = kTritonHopperS4Formula,
    .preconditions = "none",
    .source = kTritonHopperS4Source,
    .kernel_library = kTritonHopperS4Library,
    .outputs = triton_hopper_s4_outputs,
};

const Layout kTritonHopperS4KInterleavedLayout = {
    .id = "triton/hopper-s4-k-interleaved",
    .outputs_doc = kTritonHopperS4Outputs,
    .formula = kTritonHopperS4KFormula,
    .preconditions = "H a multiple of 64",
    .source = kTritonHopperS4Source,
    .kernel_library = kTritonHopperS4Library,
    .outputs = triton_hopper_s4_k_interleaved_outputs,
};

}  // namespace mxfp4
