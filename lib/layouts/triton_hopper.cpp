// TRITON and TRITON_UNFUSED on capability 9.0: Hopper value and scale layouts (mma version 3, 8
// warps). Value bytes move into 32-bit words, little-endian, and the bits of a word then mix, so
// that the kernel can widen codes without shifts. Padding bytes are 0.
//
// Example: a lone byte 0xB4 at (n, c) = (13, 45) of N = 16, C = 64 gives word 53 of row 2 the value
// 0x64000800; the scale (n, s) = (413, 3) goes to row 9, column 119.
#include "lib/core/checked.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kWarps = 8;

Shape triton_hopper_append_value(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 16);
  const int64_t columns = round_up(m.columns, 32);
  append_padding(program, m, rows, columns);
  program.then(hopper_value_step(rows, columns));
  return {m.experts, rows / 4, 4 * columns};
}

Shape triton_hopper_append_scale(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 32 * kWarps);
  const int64_t columns = round_up(m.columns, 2);
  append_padding(program, m, rows, columns);
  // n = (M, bit 7, w, bit 3, bits 2..0) and s = (p, bit 0) become R = (M, w) and
  // col = (p, n7, n210, s0, n3).
  program.then(Permute{
      Unit::kByte, {rows / (32 * kWarps), 2, kWarps, 2, 8, columns / 2, 2}, {0, 2, 5, 1, 4, 6, 3}});
  return {m.experts, rows / 32, 32 * columns};
}

// The kernel loads four scale groups at a time without a mask.
int64_t scale_slack(const TritonMatrix& m) {
  const int64_t rest = m.columns % 4;
  return rest == 1 || rest == 2 ? 64 : 0;
}

std::vector<Output> triton_hopper_outputs(const LayoutInput& input) {
  return triton_outputs(input, kHopperValueSwizzle, kHopperScaleSwizzle);
}

std::vector<Output> triton_hopper_k_interleaved_outputs(const LayoutInput& input) {
  return triton_k_interleaved_outputs(kTritonHopperKInterleavedLayout.id, input,
                                      kHopperValueSwizzle, kHopperScaleSwizzle);
}

constexpr std::string_view kTritonHopperOutputs =
    "w13_weight, w2_weight: U8 [E, up(N,16)/4, 4*up(C,32)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,256)/32, 32*up(S,2)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel option to set: split_k=1";
constexpr std::string_view kTritonHopperFormula =
    "value byte (n,c): row 4*(n>>4) + ((n>>1)&3), word 32*(c>>5) + 16*(n&1) + 4*(c&3) + "
    "((c>>3)&3), slot 2*((c>>2)&1) + ((n>>3)&1)\n"
    "the four bytes of a word then mix: half(low nibbles) | half(high nibbles) << 16, where half "
    "puts the bits of the codes a, b, c, d of slots 0..3 as\n"
    "  bit 15  14  13  12  11  10  9   8..6  5..3  2..0\n"
    "      a.3 d.3 d.0 b.3 d.2 d.1 c.3 a.210 b.210 c.210\n"
    "scale (n,s): row 8*(n/256) + ((n>>4)&7), column 64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + "
    "2*(s&1) + ((n>>3)&1)";
constexpr std::string_view kTritonHopperKFormula =
    "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
    "value byte (n,c) and scale (n,s): as triton/hopper";
constexpr std::string_view kTritonHopperSource =
    "triton_kernels 3.6.0 layout_details/hopper_value.py, hopper_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";

}  // namespace

Program hopper_value_definition(int64_t rows, int64_t columns) {
  Program program(rows * columns);
  // n = (m, bit 3, bits 2..1, bit 0) and c = (g, bits 4..3, bit 2, bits 1..0) become R = (m, n21)
  // and byte (g, n0, c10, c43, c2, n3).
  program.then(
      Permute{Unit::kByte, {rows / 16, 2, 4, 2, columns / 32, 4, 2, 4}, {0, 2, 4, 3, 7, 5, 6, 1}});
  program.then(Recode{&kHopperMix, rows * columns / 4});
  return program;
}

const TritonSwizzle kHopperValueSwizzle = {"HopperMXValueLayout",
                                           "HOPPER_VALUE",
                                           {{"mx_axis", 1}, {"mma_version", 3}},
                                           triton_hopper_append_value,
                                           nullptr};
const TritonSwizzle kHopperScaleSwizzle = {"HopperMXScaleLayout",
                                           "HOPPER_SCALE",
                                           {{"mx_axis", 1}, {"num_warps", kWarps}},
                                           triton_hopper_append_scale,
                                           scale_slack};

const Layout kTritonHopperLayout = {
    .id = "triton/hopper",
    .outputs_doc = kTritonHopperOutputs,
    .formula = kTritonHopperFormula,
    .preconditions = "none",
    .source = kTritonHopperSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_hopper_outputs,
};

const Layout kTritonHopperKInterleavedLayout = {
    .id = "triton/hopper-k-interleaved",
    .outputs_doc = kTritonHopperOutputs,
    .formula = kTritonHopperKFormula,
    .preconditions = "H a multiple of 64",
    .source = kTritonHopperSource,
    .kernel_library = "triton_kernels 3.6.0",
    .outputs = triton_hopper_k_interleaved_outputs,
};

}  // namespace mxfp4
