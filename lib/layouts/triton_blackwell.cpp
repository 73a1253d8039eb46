// TRITON and TRITON_UNFUSED on capability 10.0 and above: Blackwell value and scale layouts.
//
//   w13_weight, w2_weight              U8 [E, N, Cp]
//   w13_weight_scale, w2_weight_scale  U8 [1, E Np/128, Sp/4, 2, 256]
//   w13_bias, w2_bias                  F32 [E, 2I], [E, H]              optional
//
// w13: N = 2I, C = H/2, S = H/32; w2: N = H, C = I/2, S = I/32. Cp = up(C, 128), Np = up(N, 128),
// Sp = up(S, 8). Padding bytes are 0.
// Values keep their place; each row grows to a multiple of 256 codes. Scale (n, s) of an expert
// goes to byte offset (the 128 x 4 block-scale tile)
//   (((n >> 7) * Sp/4 + (s >> 2)) << 9) + ((n & 31) << 4) + (((n >> 5) & 3) << 2) + (s & 3)
// Example: N = 128, S = 8, (n, s) = (37, 5) -> 597.
//
// Preconditions: none (H % 64 == 0 for the k-interleaved variant).
// Source: triton_kernels 3.6.0 tensor_details/layout_details/blackwell_value.py,
// blackwell_scale.py.
#include "lib/core/checked.hpp"
#include "lib/layouts/all.hpp"
#include "lib/layouts/triton_common.hpp"

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
    "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded\n"
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
    .backends = "TRITON (gpt_oss), TRITON_UNFUSED, on capability 10.0 and above",
    .outputs_doc = kTritonBlackwellOutputs,
    .formula = kTritonBlackwellFormula,
    .preconditions = "none",
    .source = kTritonBlackwellSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_blackwell_outputs,
    .check_data = nullptr,
};

const Layout kTritonBlackwellKInterleavedLayout = {
    .id = "triton/blackwell-k-interleaved",
    .backends = "TRITON (generic), on capability 10.0 and above",
    .outputs_doc = kTritonBlackwellOutputs,
    .formula = kTritonBlackwellKFormula,
    .preconditions = "H a multiple of 64",
    .source = kTritonBlackwellSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_blackwell_k_interleaved_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
