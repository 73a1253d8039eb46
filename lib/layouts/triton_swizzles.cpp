// The swizzles of triton_kernels' layout classes, for one expert's matrix. Padding bytes are 0
// where nothing else is said.
#include "lib/core/checked.hpp"
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kWarps = 8;

Shape append_nothing(Program&, const TritonMatrix& m) { return {m.experts, m.rows, m.columns}; }

template <int64_t kRowMultiple, int64_t kColumnMultiple>
Shape append_hopper_values(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, kRowMultiple);
  const int64_t columns = round_up(m.columns, kColumnMultiple);
  append_padding(program, m, rows, columns);
  program.then(hopper_value_step(rows, columns));
  return {m.experts, rows / 4, 4 * columns};
}

Shape append_hopper_scales(Program& program, const TritonMatrix& m) {
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
int64_t hopper_scale_slack(const TritonMatrix& m) {
  const int64_t rest = m.columns % 4;
  return rest == 1 || rest == 2 ? 64 : 0;
}

Shape append_blackwell_values(Program& program, const TritonMatrix& m) {
  const int64_t columns = round_up(m.columns, 128);
  append_padding(program, m, m.rows, columns);
  return {m.experts, m.rows, columns};
}

Shape append_blackwell_scales(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 128);
  const int64_t columns = round_up(m.columns, 8);
  append_padding(program, m, rows, columns);
  program.then(Permute{Unit::kByte, {rows / 128, 4, 32, columns / 4, 4}, {0, 3, 2, 1, 4}});
  return {1, m.experts * (rows / 128), columns / 4, 2, 256};
}

Shape append_cdna4_scales(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 32);
  const int64_t columns = round_up(m.columns, 8);
  append_padding(program, m, rows, columns);
  program.then(cdna4_scale_tiles(rows, columns, RowPairs::kKept));
  return {m.experts, rows / 32, checked_mul(32, columns)};
}

Shape append_transposed(Program& program, const TritonMatrix& m) {
  program.then(Permute{Unit::kByte, {m.rows, m.columns}, {1, 0}});
  return {m.experts, m.columns, m.rows};
}

// AITER's tiles of 32 rows and 4 columns, transposed.
Shape append_gfx1250_scales(Program& program, const TritonMatrix& m) {
  program.then(Permute{Unit::kByte, {m.rows / 32, 32, m.columns / 4, 4}, {2, 1, 3, 0}});
  return {m.experts, checked_mul(32, m.columns), m.rows / 32};
}

TritonSwizzle hopper_values(TritonAppend append) {
  return {.layout = "HopperMXValueLayout",
          .layout_name = "HOPPER_VALUE",
          .kwargs = {{"mx_axis", 1}, {"mma_version", 3}},
          .append = append};
}

// Columns padded with `fill` to a multiple of 4 end where the kernel's reads end.
TritonSwizzle hopper_scales(int64_t column_multiple, std::byte fill) {
  return {.layout = "HopperMXScaleLayout",
          .layout_name = "HOPPER_SCALE",
          .kwargs = {{"mx_axis", 1}, {"num_warps", kWarps}},
          .append = append_hopper_scales,
          .slack_bytes = column_multiple == 4 ? nullptr : hopper_scale_slack,
          .column_multiple = column_multiple,
          .column_fill = fill};
}

// vLLM counts the contiguous axis of a strided layout of 3.8 from the end.
TritonSwizzle strided_38(int64_t major_dim, TritonAppend append, TritonView view) {
  return {.layout = "StridedLayout",
          .layout_name = "STRIDED",
          .kwargs = {{"major_dim", major_dim}},
          .append = append,
          .from_shape = false,
          .view = view};
}

}  // namespace

Program hopper_value_definition(int64_t rows, int64_t columns) {
  Program program(rows * columns);
  program.then(hopper_value_bytes(rows, columns));
  program.then(Recode{&kHopperMix, rows * columns / 4});
  return program;
}

const TritonSwizzle kStrided = {
    .layout = "StridedLayout", .layout_name = "None", .append = append_nothing};
const TritonSwizzle kHopperValues = hopper_values(append_hopper_values<16, 32>);
const TritonSwizzle kHopper64Values = hopper_values(append_hopper_values<64, 64>);
const TritonSwizzle kHopper256Values = hopper_values(append_hopper_values<256, 64>);
const TritonSwizzle kHopperScales = hopper_scales(1, std::byte{0});
const TritonSwizzle kHopperScalesByFour = hopper_scales(4, std::byte{0});
const TritonSwizzle kHopperScalesByFourOnes = hopper_scales(4, std::byte{0x7F});
const TritonSwizzle kBlackwellValues = {.layout = "BlackwellMXValueLayout",
                                        .layout_name = "BLACKWELL_VALUE",
                                        .append = append_blackwell_values};
const TritonSwizzle kBlackwellScales = {.layout = "BlackwellMXScaleLayout",
                                        .layout_name = "BLACKWELL_SCALE",
                                        .append = append_blackwell_scales};
const TritonSwizzle kCdna4Scales = {
    .layout = "CDNA4MXScaleLayout", .layout_name = "CDNA4_SCALE", .append = append_cdna4_scales};
const TritonSwizzle kTriton38Values = strided_38(1, append_nothing, TritonView::kTransposed);
const TritonSwizzle kTriton38StridedScales =
    strided_38(2, append_transposed, TritonView::kAsStored);
const TritonSwizzle kTriton38Cdna4Scales = {.layout = "CDNA4MXScaleLayout",
                                            .layout_name = "CDNA4_SCALE",
                                            .append = append_cdna4_scales,
                                            .from_shape = false};
// AITER's tiles are what the layout is asked for.
const TritonSwizzle kTriton38Gfx1250Scales =
    strided_38(2, append_gfx1250_scales, TritonView::kWrappedAsStored);

}  // namespace mxfp4
