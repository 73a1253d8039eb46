// TRITON and TRITON_UNFUSED on capability 10.0 and above: Blackwell value and scale layouts. Values
// keep their place in rows padded to a multiple of 256 codes; scales are in 128 x 4 tiles. Padding
// bytes are 0.
//
// Example: N = 128, S = 8, scale (n, s) = (37, 5) -> 597.
#include "lib/core/checked.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

Shape triton_blackwell_append_value(Program& program, const TritonMatrix& m) {
  const int64_t columns = round_up(m.columns, 128);
  append_padding(program, m, m.rows, columns);
  return {m.experts, m.rows, columns};
}

Shape triton_blackwell_append_scale(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 128);
  const int64_t columns = round_up(m.columns, 8);
  append_padding(program, m, rows, columns);
  program.then(Permute{Unit::kByte, {rows / 128, 4, 32, columns / 4, 4}, {0, 3, 2, 1, 4}});
  return {1, m.experts * (rows / 128), columns / 4, 2, 256};
}

std::vector<Output> triton_blackwell_outputs(const LayoutInput& input) {
  return triton_outputs(input, kBlackwellValueSwizzle, kBlackwellScaleSwizzle);
}

std::vector<Output> triton_blackwell_k_interleaved_outputs(const LayoutInput& input) {
  return triton_k_interleaved_outputs(kTritonBlackwellKInterleavedLayout.id, input,
                                      kBlackwellValueSwizzle, kBlackwellScaleSwizzle);
}

constexpr std::string_view kTritonBlackwellOutputs =
    "w13_weight, w2_weight: U8 [E, N, up(C,128)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [1, E*up(N,128)/128, up(S,8)/4, 2, 256]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel options to set on capability 10.x: is_persistent=true, epilogue_subtile=1";
constexpr std::string_view kTritonBlackwellFormula =
    "value byte (n,c): row n, column c\n"
    "scale (n,s): offset (((n>>7)*up(S,8)/4 + (s>>2)) << 9) + ((n&31) << 4) + (((n>>5)&3) << 2) "
    "+ (s&3)";
constexpr std::string_view kTritonBlackwellKFormula =
    "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
    "value byte (n,c) and scale (n,s): as triton/blackwell";
constexpr std::string_view kTritonBlackwellSource =
    "triton_kernels 3.6.0 layout_details/blackwell_value.py, blackwell_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";

}  // namespace

const TritonSwizzle kBlackwellValueSwizzle = {
    "BlackwellMXValueLayout", "BLACKWELL_VALUE", {}, triton_blackwell_append_value, nullptr};
const TritonSwizzle kBlackwellScaleSwizzle = {
    "BlackwellMXScaleLayout", "BLACKWELL_SCALE", {}, triton_blackwell_append_scale, nullptr};

const Layout kTritonBlackwellLayout = {
    .id = "triton/blackwell",
    .outputs_doc = kTritonBlackwellOutputs,
    .formula = kTritonBlackwellFormula,
    .preconditions = "none",
    .source = kTritonBlackwellSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_blackwell_outputs,
};

const Layout kTritonBlackwellKInterleavedLayout = {
    .id = "triton/blackwell-k-interleaved",
    .outputs_doc = kTritonBlackwellOutputs,
    .formula = kTritonBlackwellKFormula,
    .preconditions = "H a multiple of 64",
    .source = kTritonBlackwellSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_blackwell_k_interleaved_outputs,
};

}  // namespace mxfp4
