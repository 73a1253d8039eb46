// The layouts of triton_kernels 3.8 against their index formulas, written out here once more: every
// byte of small layers, padding included. triton_layouts_test.cpp has their interleaved variants.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "lib/layouts/triton_layouts.hpp"
#include "tests/unit/layout_runner.hpp"

namespace mxfp4 {
namespace {

using namespace layout_test;

// By H and I.
class Triton38Sizes : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {
 protected:
  LayoutInput input = layer_of(2, GetParam().first, GetParam().second);
};

INSTANTIATE_TEST_SUITE_P(, Triton38Sizes,
                         ::testing::Values(std::pair(32, 32), std::pair(96, 64),
                                           std::pair(160, 288), std::pair(512, 160)));

TEST_P(Triton38Sizes, Scales) {
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case plain = run_case(kTriton38StridedLayout, input, slot);
    const int64_t rows = plain.loaded.rows;
    EXPECT_EQ(plain.out, scattered(plain, plain.loaded.bytes(),
                                   [&](int64_t n, int64_t s) { return s * rows + n; }));
    EXPECT_EQ(plain.output.spec.shape, Shape({2, plain.loaded.row_bytes, rows}));

    const Case cdna4 = run_case(kTriton38Cdna4Layout, input, slot);
    const int64_t row_bytes = 32 * up(cdna4.loaded.row_bytes, 8);
    const int64_t stripes = up(rows, 32) / 32;
    EXPECT_EQ(cdna4.out, scattered(cdna4, stripes * row_bytes, [&](int64_t n, int64_t s) {
                return (n >> 5) * row_bytes + 256 * (s >> 3) + 64 * (s & 3) + 4 * (n & 15) +
                       2 * (s >> 2 & 1) + (n >> 4 & 1);
              }));
    EXPECT_EQ(cdna4.output.spec.shape, Shape({2, stripes, row_bytes}));
  }
  for (const Layout* layout : {&kTriton38StridedLayout, &kTriton38Cdna4Layout}) {
    const Case weight = run_case(*layout, input, Slot::kW13Weight);
    EXPECT_EQ(weight.out, weight.in) << id_of(*layout);
  }
}

TEST(Triton38Layouts, Gfx1250Scale) {
  const LayoutInput input = layer_of(2, 384, 256);
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case c = run_case(kTriton38Gfx1250Layout, input, slot);
    const int64_t stripes = c.loaded.rows / 32;
    EXPECT_EQ(c.out, scattered(c, c.loaded.bytes(), [&](int64_t n, int64_t s) {
                return (128 * (s / 4) + 4 * (n % 32) + s % 4) * stripes + n / 32;
              }));
    EXPECT_EQ(c.output.spec.shape, Shape({2, 32 * c.loaded.row_bytes, stripes}));
  }
}

// Where no scale is padded, 3.8 packs gfx950 as the versions before it.
TEST(Triton38Layouts, Cdna4IsTheOldOne) {
  const LayoutInput input = layer_of(2, 512, 256);
  const std::array<std::pair<const Layout*, const Layout*>, 3> pairs = {
      {{&kTriton38Cdna4Layout, &kTritonCdna4Layout},
       {&kTriton38Cdna4KInterleavedLayout, &kTritonCdna4KInterleavedLayout},
       {&kTriton38Cdna4RowInterleavedLayout, &kTritonCdna4RowInterleavedLayout}}};
  for (const auto& [now, before] : pairs) {
    for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale,
                      Slot::kW2WeightScale, Slot::kW13Bias, Slot::kW2Bias}) {
      EXPECT_EQ(run_case(*now, input, slot).out, run_case(*before, input, slot).out) << id_of(*now);
    }
  }
}

TEST(Triton38Layouts, WorkedExamples) {
  const Bytes strided = packed_lone_byte(kTriton38StridedLayout, layer_of(1, 64, 512),
                                         Slot::kW2WeightScale, 53, 13, 1);
  EXPECT_EQ(set_offsets(strided), (std::vector<size_t>{885}));
  const Bytes gfx1250 = packed_lone_byte(kTriton38Gfx1250Layout, layer_of(1, 128, 512),
                                         Slot::kW2WeightScale, 53, 13, 1);
  EXPECT_EQ(set_offsets(gfx1250), (std::vector<size_t>{469 * 4 + 1}));
}

// A layout of 3.8 is an object that was made from no shape.
TEST(Triton38Layouts, StorageTellsTheEngineView) {
  using Kwargs = std::vector<std::pair<std::string, int64_t>>;
  const auto storage = [](const Layout& layout, const char* name) {
    return output_named(layout, layer_of(3, 128, 256), name).storage;
  };
  const Storage value = storage(kTriton38StridedLayout, "w13_weight");
  EXPECT_EQ(value.layout, "StridedLayout");
  EXPECT_EQ(value.layout_name, "STRIDED");
  EXPECT_EQ(value.layout_kwargs, (Kwargs{{"major_dim", 1}}));
  EXPECT_TRUE(value.layout_init_shape.empty());
  EXPECT_EQ(value.storage_shape, (std::vector<int64_t>{3, 64, 512}));
  EXPECT_EQ(value.storage_strides, (std::vector<int64_t>{32768, 1, 64}));
  EXPECT_EQ(value.logical_shape, (std::vector<int64_t>{3, 128, 512}));

  const Storage strided = storage(kTriton38StridedLayout, "w2_weight_scale");
  EXPECT_EQ(strided.layout_kwargs, (Kwargs{{"major_dim", 2}}));
  EXPECT_EQ(strided.storage_shape, (std::vector<int64_t>{3, 8, 128}));
  EXPECT_EQ(strided.storage_strides, (std::vector<int64_t>{1024, 128, 1}));
  EXPECT_EQ(strided.logical_shape, strided.storage_shape);

  const Storage cdna4 = storage(kTriton38Cdna4Layout, "w13_weight_scale");
  EXPECT_EQ(cdna4.layout, "CDNA4MXScaleLayout");
  EXPECT_TRUE(cdna4.layout_kwargs.empty());
  EXPECT_EQ(cdna4.storage_shape, (std::vector<int64_t>{3, 256, 16}));
  EXPECT_EQ(cdna4.storage_strides, (std::vector<int64_t>{4096, 1, 256}));
  EXPECT_EQ(cdna4.logical_shape, (std::vector<int64_t>{3, 4, 512}));

  const Storage gfx1250 = storage(kTriton38Gfx1250Layout, "w2_weight_scale");
  EXPECT_EQ(gfx1250.storage_shape, (std::vector<int64_t>{3, 256, 4}));
  EXPECT_EQ(gfx1250.storage_strides, (std::vector<int64_t>{1024, 4, 1}));
  EXPECT_EQ(gfx1250.logical_shape, gfx1250.storage_shape);
}

}  // namespace
}  // namespace mxfp4
