// TRITON and TRITON_UNFUSED on capability 9.0, with the values first padded to multiples of 64 both
// ways: otherwise the layouts of triton_hopper.cpp.
//
// Example: H = 2880 has C = 1440, padded 1472, so a row of w13's output has 5888 bytes.
#include "lib/core/checked.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMultiple = 64;

Shape triton_hopper_64_append_value(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, kMultiple);
  const int64_t columns = round_up(m.columns, kMultiple);
  append_padding(program, m, rows, columns);
  program.then(hopper_value_step(rows, columns));
  return {m.experts, rows / 4, 4 * columns};
}

const TritonSwizzle& value_swizzle() {
  static const TritonSwizzle kSwizzle = [] {
    TritonSwizzle swizzle = kHopperValueSwizzle;
    swizzle.append = triton_hopper_64_append_value;
    return swizzle;
  }();
  return kSwizzle;
}

std::vector<Output> triton_hopper_64_outputs(const LayoutInput& input) {
  return triton_outputs(input, value_swizzle(), kHopperScaleSwizzle);
}

std::vector<Output> triton_hopper_64_k_interleaved_outputs(const LayoutInput& input) {
  return triton_k_interleaved_outputs(kTritonHopper64KInterleavedLayout.id, input, value_swizzle(),
                                      kHopperScaleSwizzle);
}

constexpr std::string_view kTritonHopper64Outputs =
    "w13_weight, w2_weight: U8 [E, up(N,64)/4, 4*up(C,64)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,256)/32, 32*up(S,2)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel option to set: split_k=1";
constexpr std::string_view kTritonHopper64Formula =
    "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
    "scale (n,s): as triton/hopper";
constexpr std::string_view kTritonHopper64KFormula =
    "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
    "value byte (n,c) and scale (n,s): as triton/hopper-64";
constexpr std::string_view kTritonHopper64Source =
    "vLLM 0.21.0 quantization/utils/mxfp4_utils.py, _swizzle_mxfp4, and the wheel's "
    "triton_kernels, layout_details/hopper_value.py, hopper_scale.py";
constexpr std::string_view kTritonHopper64Library = "triton_kernels in the wheel of vLLM 0.21.0";

}  // namespace

const Layout kTritonHopper64Layout = {
    .id = "triton/hopper-64",
    .outputs_doc = kTritonHopper64Outputs,
    .formula = kTritonHopper64Formula,
    .preconditions = "none",
    .source = kTritonHopper64Source,
    .kernel_library = kTritonHopper64Library,
    .outputs = triton_hopper_64_outputs,
};

const Layout kTritonHopper64KInterleavedLayout = {
    .id = "triton/hopper-64-k-interleaved",
    .outputs_doc = kTritonHopper64Outputs,
    .formula = kTritonHopper64KFormula,
    .preconditions = "H a multiple of 64",
    .source = kTritonHopper64Source,
    .kernel_library = kTritonHopper64Library,
    .outputs = triton_hopper_64_k_interleaved_outputs,
};

}  // namespace mxfp4
