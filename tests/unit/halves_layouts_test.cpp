// Layouts of a w13 that is loaded as halves against those of the same model with interleaved rows:
// the kernels are the same, so the bytes must be. And the maps that have no such twin, written out.
#include <gtest/gtest.h>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "tests/unit/layout_runner.hpp"

namespace mxfp4::layout_test {
namespace {

// Rows gate 0, up 0, gate 1, ... from all gates, then all ups.
Bytes interleaved(const Bytes& halves, int64_t experts, const ExpertMatrix& matrix) {
  Bytes out(halves.size());
  const int64_t half = matrix.rows / 2;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const int64_t from = row % 2 * half + row / 2;
      for (int64_t b = 0; b < matrix.row_bytes; ++b) {
        out[static_cast<size_t>(e * matrix.bytes() + row * matrix.row_bytes + b)] =
            halves[static_cast<size_t>(e * matrix.bytes() + from * matrix.row_bytes + b)];
      }
    }
  }
  return out;
}

void expect_twins(const Layout& halves, const Layout& pairs, const LayoutInput& input) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale,
                    Slot::kW2Bias}) {
    SCOPED_TRACE(slot_name(slot));
    const ExpertMatrix matrix = input.loaded.expert(slot);
    const int64_t experts = input.loaded.dims.num_experts;
    const Bytes in = drawn_bytes(experts * matrix.bytes(), 11);
    const Output a = output_named(halves, input, slot_name(slot));
    const Output b = output_named(pairs, input, slot_name(slot));
    EXPECT_EQ(a.spec, b.spec);
    EXPECT_EQ(pack_and_restore(a, in),
              pack_and_restore(b, slot_is_w13(slot) ? interleaved(in, experts, matrix) : in));
  }
}

TEST(HalvesLayouts, EqualTheInterleavedOnes) {
  const LayoutInput input = layer_of(2, 512, 256);
  expect_twins(kAiterBf16HalvesLayout, kAiterW4a16Layout, input);
  expect_twins(kFlashinferCutlassSm90HalvesLayout, kFlashinferCutlassSm90Layout, input);
  expect_twins(kFlashinferCutlassSm90FoldedHalvesLayout, kFlashinferCutlassSm90FoldedLayout, input);
  expect_twins(kFlashinferCutlassMxfp8HalvesLayout, kFlashinferCutlassMxfp8Layout, input);
}

TEST(HalvesLayouts, CutlassKeepsNanPayloads) {
  const LayoutInput input = layer_of(1, 128, 128);
  Bytes in(512);
  in[0] = std::byte{0x01};
  in[1] = std::byte{0xFF};  // bf16 NaN FF01, of gate 0
  const Bytes out =
      pack_and_restore(output_named(kFlashinferCutlassSm90HalvesLayout, input, "w13_bias"), in);
  EXPECT_EQ(out[256], std::byte{0x01});
  EXPECT_EQ(out[257], std::byte{0xFF});
}

// I = 384 has 12 scale columns, which are padded to 16 with 1.0.
TEST(HalvesLayouts, AiterPadsScaleColumns) {
  const LayoutInput input = layer_of(3, 128, 384);
  const Output scale = output_named(kAiterBf16HalvesLayout, input, "w2_weight_scale");
  EXPECT_EQ(scale.spec.shape, (Shape{3 * 128, 16}));
  const Bytes out = packed_lone_byte(kAiterBf16HalvesLayout, input, Slot::kW2WeightScale, 17, 5, 9);
  // (17, 5): (17/32)*32*16 + (5/8)*256 + (5%4)*64 + (17%16)*4 + ((5/4)%2)*2 + (17/16)%2
  EXPECT_EQ(out[64 + 4 + 2 + 1], std::byte{9});
  // Column 12 of row 0 is padding: (12/8)*256 + 0 + 0 + ((12/4)%2)*2
  EXPECT_EQ(out[256 + 2], std::byte{0x7F});
}

TEST(HalvesLayouts, SituJoinsAllExpertsOfW2) {
  const LayoutInput input = layer_of(3, 128, 256);
  for (const Layout* layout : {&kAiterBf16SituLayout, &kAiterBf16SituA8w4Layout}) {
    const Output scale = output_named(*layout, input, "w2_weight_scale");
    EXPECT_EQ(scale.experts_per_granule, 3);
    EXPECT_EQ(scale.spec.shape, (Shape{512, 8}));
    EXPECT_EQ(scale.storage.torch_dtype, "float8_e8m0fnu");
    Bytes out(static_cast<size_t>(scale.spec.bytes()));
    Bytes scratch(static_cast<size_t>(scale.program.scratch_bytes()));
    const Bytes in(3 * 128 * 8, std::byte{3});
    scale.program.forward(in, out, scratch);
    EXPECT_EQ(out[384 * 8 - 1], std::byte{3});
    for (size_t i = 384 * 8; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0x7F});
  }
}

// Rows keep their places; the 768 rows of w13's scales need no padding, the 384 of w2's 128 more.
TEST(HalvesLayouts, SeparatedJoinsAllExpertsOfBoth) {
  const LayoutInput input = layer_of(3, 128, 128);
  const Layout& layout = kAiterBf16SeparatedLayout;
  EXPECT_EQ(output_named(layout, input, "w13_weight_scale").spec.shape, (Shape{768, 8}));
  EXPECT_EQ(output_named(layout, input, "w2_weight_scale").spec.shape, (Shape{512, 8}));
  EXPECT_EQ(output_named(layout, input, "w2_weight_scale").storage.torch_dtype, "");
  const Bytes out = packed_lone_byte(layout, input, Slot::kW13Weight, 131, 5, 9);
  // (131, 5): (131/16)*16*64 + (5/16)*256 + (131%16)*16 + 5%16
  EXPECT_EQ(set_offsets(out), (std::vector<size_t>{8192 + 53}));
}

TEST(HalvesLayouts, AitersTritonTilesScalesOfGfx1250) {
  const LayoutInput input = layer_of(1, 512, 128);
  const Output scale = output_named(kAiterTritonW4a4Layout, input, "w13_weight_scale");
  EXPECT_EQ(scale.spec.shape, (Shape{1, 8, 512}));
  EXPECT_EQ(scale.storage.storage_shape, (std::vector<int64_t>{1, 512, 8}));
  EXPECT_EQ(scale.storage.storage_strides, (std::vector<int64_t>{4096, 1, 512}));
  const Bytes out =
      packed_lone_byte(kAiterTritonW4a4Layout, input, Slot::kW13WeightScale, 53, 13, 7);
  EXPECT_EQ(set_offsets(out), (std::vector<size_t>{981}));
  // Row 1 of gate becomes row 2, row 1 of up row 3. The bias keeps its order.
  const Layout& interleaved = kAiterTritonW4a4RowInterleavedLayout;
  EXPECT_EQ(set_offsets(packed_lone_byte(interleaved, input, Slot::kW13Weight, 1, 0, 7)),
            (std::vector<size_t>{512}));
  EXPECT_EQ(set_offsets(packed_lone_byte(interleaved, input, Slot::kW13Weight, 129, 0, 7)),
            (std::vector<size_t>{768}));
  EXPECT_EQ(set_offsets(packed_lone_byte(interleaved, input, Slot::kW13WeightScale, 129, 0, 7)),
            (std::vector<size_t>{12}));
}

TEST(HalvesLayouts, DeepgemmPacksFourCodesAWord) {
  const LayoutInput input = layer_of(1, 256, 128);
  const Bytes out = packed_lone_byte(kDeepgemmPackedLayout, input, Slot::kW13WeightScale, 3, 6, 7);
  EXPECT_EQ(set_offsets(out), (std::vector<size_t>{4 * (1 * 256 + 3) + 2}));
}

TEST(HalvesLayouts, HopperScalesHaveFourColumnsMore) {
  const LayoutInput input = layer_of(1, 160, 64);  // 5 scale columns, padded to 8
  const Output scale = output_named(kTritonHopperS4Layout, input, "w13_weight_scale");
  EXPECT_EQ(scale.spec.shape, (Shape{1, 8, 256}));
  EXPECT_EQ(scale.storage.logical_shape, (std::vector<int64_t>{1, 8, 128}));
  EXPECT_EQ(scale.storage.slack_bytes, 0);
}

}  // namespace
}  // namespace mxfp4::layout_test
