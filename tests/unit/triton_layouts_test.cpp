// The layouts of triton_kernels against their index formulas, written out here once more and
// independently of the axis permutations: every byte of small layers, padding included.
#include "lib/layouts/triton_layouts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "lib/core/error.hpp"
#include "tests/unit/layout_runner.hpp"

namespace mxfp4 {
namespace {

using namespace layout_test;

// half(a, b, c, d) as a table: output bit <- (code, bit of the code).
struct BitSource {
  int code;
  int bit;
};
constexpr std::array<BitSource, 16> kHalfBits = {{
    {2, 0},
    {2, 1},
    {2, 2},
    {1, 0},
    {1, 1},
    {1, 2},
    {0, 0},
    {0, 1},
    {0, 2},
    {2, 3},
    {3, 1},
    {3, 2},
    {1, 3},
    {3, 0},
    {3, 3},
    {0, 3},
}};

uint32_t half(const std::array<unsigned, 4>& codes) {
  uint32_t out = 0;
  for (size_t i = 0; i < kHalfBits.size(); ++i) {
    const auto [code, bit] = kHalfBits[i];
    out |= (codes[static_cast<size_t>(code)] >> bit & 1U) << i;
  }
  return out;
}

TEST(TritonLayouts, HalfTable) {
  EXPECT_EQ(half({1, 2, 3, 4}), 0x0853U);
  EXPECT_EQ(half({8, 0, 0, 0}), 0x8000U);
  EXPECT_EQ(half({0, 8, 0, 0}), 0x1000U);
  EXPECT_EQ(half({0, 0, 8, 0}), 0x0200U);
  EXPECT_EQ(half({0, 0, 0, 8}), 0x4000U);
  EXPECT_EQ(half({0, 0, 0, 1}), 0x2000U);
  EXPECT_EQ(half({0, 0, 0, 2}), 0x0400U);
  EXPECT_EQ(half({0, 0, 0, 4}), 0x0800U);
}

Bytes expected_hopper_value(const Case& c) {
  const int64_t rows = up(c.loaded.rows, 16);
  const int64_t columns = up(c.loaded.row_bytes, 32);
  const auto source = [&](int64_t e, int64_t n, int64_t k) {
    const bool inside = n < c.loaded.rows && k < c.loaded.row_bytes;
    return inside ? std::to_integer<unsigned>(c.in_at(e, n, k)) : 0U;
  };
  Bytes want(static_cast<size_t>(c.experts * rows * columns));
  size_t at = 0;
  for (int64_t e = 0; e < c.experts; ++e) {
    for (int64_t row = 0; row < rows / 4; ++row) {
      for (int64_t q = 0; q < columns; ++q, at += 4) {
        const int64_t n0 = 16 * (row >> 2) + 2 * (row & 3) + (q >> 4 & 1);
        const int64_t c0 = 32 * (q >> 5) + 8 * (q & 3) + (q >> 2 & 3);
        const std::array<unsigned, 4> b = {source(e, n0, c0), source(e, n0 + 8, c0),
                                           source(e, n0, c0 + 4), source(e, n0 + 8, c0 + 4)};
        const uint32_t word = half({b[0] & 15, b[1] & 15, b[2] & 15, b[3] & 15}) |
                              half({b[0] >> 4, b[1] >> 4, b[2] >> 4, b[3] >> 4}) << 16;
        for (size_t i = 0; i < 4; ++i) want[at + i] = static_cast<std::byte>(word >> (8 * i) & 255);
      }
    }
  }
  return want;
}

struct Sizes {
  int64_t hidden;
  int64_t inter;
};

class TritonSizes : public ::testing::TestWithParam<Sizes> {
 protected:
  LayoutInput input = layer_of(2, GetParam().hidden, GetParam().inter);
};

INSTANTIATE_TEST_SUITE_P(, TritonSizes,
                         ::testing::Values(Sizes{32, 32}, Sizes{96, 64}, Sizes{160, 288},
                                           Sizes{512, 160}));

TEST_P(TritonSizes, HopperValue) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    const Case c = run_case(kTritonHopperLayout, input, slot);
    EXPECT_EQ(c.out, expected_hopper_value(c)) << c.output.name;
    EXPECT_EQ(c.output.spec.shape,
              Shape({2, up(c.loaded.rows, 16) / 4, 4 * up(c.loaded.row_bytes, 32)}));
  }
}

TEST_P(TritonSizes, HopperScale) {
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case c = run_case(kTritonHopperLayout, input, slot);
    const int64_t rows = up(c.loaded.rows, 256);
    const int64_t row_bytes = 32 * up(c.loaded.row_bytes, 2);
    const Bytes want = scattered(c, rows / 32 * row_bytes, [&](int64_t n, int64_t s) {
      const int64_t row = 8 * (n / 256) + (n >> 4) % 8;
      return row * row_bytes + 64 * (s >> 1) + 32 * (n / 128 & 1) + 4 * (n & 7) + 2 * (s & 1) +
             (n >> 3 & 1);
    });
    EXPECT_EQ(c.out, want) << c.output.name;
    EXPECT_EQ(c.output.spec.shape, Shape({2, rows / 32, row_bytes}));
  }
}

TEST_P(TritonSizes, BlackwellValue) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    const Case c = run_case(kTritonBlackwellLayout, input, slot);
    const int64_t row_bytes = up(c.loaded.row_bytes, 128);
    const Bytes want = scattered(c, c.loaded.rows * row_bytes,
                                 [&](int64_t n, int64_t k) { return n * row_bytes + k; });
    EXPECT_EQ(c.out, want) << c.output.name;
    EXPECT_EQ(c.output.spec.shape, Shape({2, c.loaded.rows, row_bytes}));
  }
}

TEST_P(TritonSizes, BlackwellScale) {
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case c = run_case(kTritonBlackwellLayout, input, slot);
    const int64_t rows = up(c.loaded.rows, 128);
    const int64_t tiles = up(c.loaded.row_bytes, 8) / 4;
    const Bytes want = scattered(c, rows * tiles * 4, [&](int64_t n, int64_t s) {
      return (((n >> 7) * tiles + (s >> 2)) << 9) + ((n & 31) << 4) + ((n >> 5 & 3) << 2) + (s & 3);
    });
    EXPECT_EQ(c.out, want) << c.output.name;
    EXPECT_EQ(c.output.spec.shape, Shape({1, 2 * rows / 128, tiles, 2, 256}));
  }
}

TEST_P(TritonSizes, StridedKeepsEverything) {
  for (Slot slot :
       {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case c = run_case(kTritonStridedLayout, input, slot);
    EXPECT_EQ(c.out, c.in) << c.output.name;
    EXPECT_EQ(c.output.spec, input.loaded.tensor(slot)) << c.output.name;
  }
}

TEST(TritonLayouts, Cdna4Scale) {
  const LayoutInput input = layer_of(2, 512, 256);
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const Case c = run_case(kTritonCdna4Layout, input, slot);
    const int64_t row_bytes = 32 * c.loaded.row_bytes;
    const Bytes want = scattered(c, c.loaded.bytes(), [&](int64_t n, int64_t s) {
      return (n >> 5) * row_bytes + 256 * (s >> 3) + 64 * (s & 3) + 4 * (n & 15) +
             2 * (s >> 2 & 1) + (n >> 4 & 1);
    });
    EXPECT_EQ(c.out, want) << c.output.name;
    EXPECT_EQ(c.output.spec.shape, Shape({2, c.loaded.rows / 32, row_bytes}));
  }
  const Case weight = run_case(kTritonCdna4Layout, input, Slot::kW13Weight);
  EXPECT_EQ(weight.out, weight.in);
}

TEST(TritonLayouts, WorkedExamples) {
  // A byte 0xB4 at (13, 45) of C = 64: word 53 of row 2 is 0x64000800.
  const Bytes value =
      packed_lone_byte(kTritonHopperLayout, layer_of(1, 32, 128), Slot::kW2Weight, 13, 45, 0xB4);
  EXPECT_EQ(set_offsets(value), (std::vector<size_t>{2 * 256 + 213, 2 * 256 + 215}));
  EXPECT_EQ(value[2 * 256 + 213], std::byte{0x08});
  EXPECT_EQ(value[2 * 256 + 215], std::byte{0x64});

  const Bytes hopper = packed_lone_byte(kTritonHopperLayout, layer_of(1, 128, 224),
                                        Slot::kW13WeightScale, 413, 3, 1);
  EXPECT_EQ(set_offsets(hopper), (std::vector<size_t>{9 * 128 + 119}));

  const Bytes blackwell = packed_lone_byte(kTritonBlackwellLayout, layer_of(1, 256, 64),
                                           Slot::kW13WeightScale, 37, 5, 1);
  EXPECT_EQ(set_offsets(blackwell), (std::vector<size_t>{597}));

  const Bytes cdna4 =
      packed_lone_byte(kTritonCdna4Layout, layer_of(1, 512, 256), Slot::kW13WeightScale, 53, 13, 1);
  EXPECT_EQ(set_offsets(cdna4), (std::vector<size_t>{512 + 343}));
}

// The k-interleaved variant is the plain one on a woven w13; w2 does not change.
void expect_woven(const Layout& woven, const Layout& plain, const LayoutInput& input) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW13WeightScale}) {
    const Case c = run_case(woven, input, slot);
    const int64_t n = c.loaded.row_bytes;
    Bytes rows(c.in.size());
    for (int64_t row = 0; row < c.experts * c.loaded.rows; ++row) {
      for (int64_t d = 0; d < n; ++d) {
        const int64_t from = (d >> 1) + (d & 1) * (n / 2);
        rows[static_cast<size_t>(row * n + d)] = c.in[static_cast<size_t>(row * n + from)];
      }
    }
    EXPECT_EQ(c.out, pack_and_restore(output_named(plain, input, slot_name(slot)), rows))
        << id_of(woven);
  }
  for (Slot slot : {Slot::kW2Weight, Slot::kW2WeightScale, Slot::kW2Bias}) {
    EXPECT_EQ(run_case(woven, input, slot).out, run_case(plain, input, slot).out) << id_of(woven);
  }
}

TEST(TritonLayouts, KInterleavedWeavesW13AlongItsRows) {
  const LayoutInput small = layer_of(2, 192, 32);
  const LayoutInput large = layer_of(2, 512, 256);
  expect_woven(kTritonHopperKInterleavedLayout, kTritonHopperLayout, small);
  expect_woven(kTritonBlackwellKInterleavedLayout, kTritonBlackwellLayout, small);
  expect_woven(kTritonStridedKInterleavedLayout, kTritonStridedLayout, small);
  expect_woven(kTritonCdna4KInterleavedLayout, kTritonCdna4Layout, large);
  expect_woven(kTriton38StridedKInterleavedLayout, kTriton38StridedLayout, small);
  expect_woven(kTriton38Cdna4KInterleavedLayout, kTriton38Cdna4Layout, small);
  expect_woven(kTriton38Gfx1250KInterleavedLayout, kTriton38Gfx1250Layout, large);
}

// The row-interleaved variant is the plain one on a w13 whose row 2i + g is the loaded row g I + i.
void expect_rows_woven(const Layout& woven, const Layout& plain, const LayoutInput& input) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW13WeightScale, Slot::kW13Bias}) {
    const Case c = run_case(woven, input, slot);
    const int64_t rows = c.loaded.rows;
    const auto row_bytes = static_cast<size_t>(c.in.size()) / static_cast<size_t>(c.experts * rows);
    Bytes in_pairs;
    for (int64_t e = 0; e < c.experts; ++e) {
      for (int64_t i = 0; i < rows / 2; ++i) {
        for (const int64_t from : {i, rows / 2 + i}) {
          const auto at =
              static_cast<std::ptrdiff_t>(static_cast<size_t>(e * rows + from) * row_bytes);
          in_pairs.insert(in_pairs.end(), c.in.begin() + at,
                          c.in.begin() + at + static_cast<std::ptrdiff_t>(row_bytes));
        }
      }
    }
    EXPECT_EQ(c.out, pack_and_restore(output_named(plain, input, slot_name(slot)), in_pairs))
        << id_of(woven) << " " << slot_name(slot);
    EXPECT_NE(c.out, run_case(plain, input, slot).out) << id_of(woven) << " " << slot_name(slot);
  }
  for (Slot slot : {Slot::kW2Weight, Slot::kW2WeightScale, Slot::kW2Bias}) {
    EXPECT_EQ(run_case(woven, input, slot).out, run_case(plain, input, slot).out) << id_of(woven);
  }
}

TEST(TritonLayouts, RowInterleavedPairsGateAndUp) {
  expect_rows_woven(kTritonStridedRowInterleavedLayout, kTritonStridedLayout, layer_of(2, 96, 32));
  expect_rows_woven(kTritonCdna4RowInterleavedLayout, kTritonCdna4Layout, layer_of(2, 512, 256));
  expect_rows_woven(kTriton38StridedRowInterleavedLayout, kTriton38StridedLayout,
                    layer_of(2, 96, 32));
  expect_rows_woven(kTriton38Cdna4RowInterleavedLayout, kTriton38Cdna4Layout, layer_of(2, 96, 32));
  expect_rows_woven(kTriton38Gfx1250RowInterleavedLayout, kTriton38Gfx1250Layout,
                    layer_of(2, 256, 128));
  // Row 8 + 3 of the up half, I = 32, is row 2 * 11 + 1 = 23 of H / 2 = 16 bytes.
  const Bytes moved = packed_lone_byte(kTritonStridedRowInterleavedLayout, layer_of(1, 32, 32),
                                       Slot::kW13Weight, 32 + 11, 5, 1);
  EXPECT_EQ(set_offsets(moved), (std::vector<size_t>{23 * 16 + 5}));
}

TEST(TritonLayouts, BiasesAreWidenedAndWoven) {
  LayoutInput input = layer_of(2, 64, 32);
  const Case plain = run_case(kTritonHopperLayout, input, Slot::kW13Bias);
  const Case woven = run_case(kTritonHopperKInterleavedLayout, input, Slot::kW13Bias);
  EXPECT_EQ(woven.output.spec, (TensorSpec{DType::kF32, {2, 64}}));
  for (size_t e = 0; e < 2; ++e) {
    for (size_t d = 0; d < 64; ++d) {
      uint16_t bits = 0;
      std::array<uint32_t, 2> got{};
      std::memcpy(&bits, &plain.in[(e * 64 + d) * 2], 2);
      std::memcpy(&got[0], &plain.out[(e * 64 + d) * 4], 4);
      EXPECT_EQ(got[0], uint32_t{bits} << 16);
      std::memcpy(&bits, &woven.in[(e * 64 + (d >> 1) + (d & 1) * 32) * 2], 2);
      std::memcpy(&got[1], &woven.out[(e * 64 + d) * 4], 4);
      EXPECT_EQ(got[1], uint32_t{bits} << 16);
    }
  }
  input.loaded.bias = DType::kF32;
  const Case f32 = run_case(kTritonHopperLayout, input, Slot::kW13Bias);
  EXPECT_EQ(f32.out, f32.in);
  input.loaded.bias.reset();
  EXPECT_EQ(make_outputs(kTritonHopperLayout, input).size(), 4U);
}

TEST(TritonLayouts, StorageTellsTheEngineView) {
  const LayoutInput input = layer_of(3, 96, 64);
  const Storage value = output_named(kTritonHopperLayout, input, "w13_weight").storage;
  EXPECT_EQ(value.layout, "HopperMXValueLayout");
  EXPECT_EQ(value.layout_name, "HOPPER_VALUE");
  EXPECT_EQ(value.layout_kwargs,
            (std::vector<std::pair<std::string, int64_t>>{{"mx_axis", 1}, {"mma_version", 3}}));
  EXPECT_EQ(value.layout_init_shape, (std::vector<int64_t>{3, 48, 128}));
  EXPECT_EQ(value.storage_shape, (std::vector<int64_t>{3, 256, 32}));
  EXPECT_EQ(value.storage_strides, (std::vector<int64_t>{8192, 1, 256}));
  EXPECT_EQ(value.logical_shape, (std::vector<int64_t>{3, 96, 128}));
  EXPECT_EQ(value.logical_dtype, "fp4_e2m1");

  const Storage scale = output_named(kTritonBlackwellLayout, input, "w2_weight_scale").storage;
  EXPECT_EQ(scale.layout, "BlackwellMXScaleLayout");
  EXPECT_EQ(scale.layout_init_shape, (std::vector<int64_t>{3, 2, 96}));
  EXPECT_EQ(scale.storage_shape, (std::vector<int64_t>{1, 3, 2, 2, 256}));
  EXPECT_EQ(scale.storage_strides, (std::vector<int64_t>{3072, 1024, 512, 256, 1}));
  EXPECT_EQ(scale.logical_shape, (std::vector<int64_t>{3, 2, 96}));
  EXPECT_EQ(scale.logical_dtype, "uint8");
  EXPECT_EQ(output_named(kTritonStridedLayout, input, "w2_weight").storage.layout_name, "None");
}

TEST(TritonLayouts, HopperScaleSlackByGroupCount) {
  // S % 4 = 1, 2, 3, 0 of w13.
  for (const auto& [hidden, slack] :
       std::vector<std::pair<int64_t, int64_t>>{{160, 64}, {192, 64}, {224, 0}, {256, 0}}) {
    const LayoutInput input = layer_of(1, hidden, 128);
    EXPECT_EQ(output_named(kTritonHopperLayout, input, "w13_weight_scale").storage.slack_bytes,
              slack);
    EXPECT_EQ(output_named(kTritonHopperLayout, input, "w13_weight").storage.slack_bytes, 0);
    EXPECT_EQ(output_named(kTritonBlackwellLayout, input, "w13_weight_scale").storage.slack_bytes,
              0);
  }
}

void expect_refusal(const Layout& layout, int64_t hidden, int64_t inter, std::string_view what) {
  try {
    (void)make_outputs(layout, layer_of(1, hidden, inter));
    FAIL() << id_of(layout) << " takes H " << hidden << ", I " << inter;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

TEST(TritonLayouts, RefuseOtherSizes) {
  for (const Layout* layout :
       {&kTritonHopperKInterleavedLayout, &kTritonBlackwellKInterleavedLayout,
        &kTritonStridedKInterleavedLayout}) {
    expect_refusal(*layout, 96, 64, "hidden size must be a multiple of 64, found 96");
  }
  for (const Layout* layout :
       {&kTritonCdna4Layout, &kTritonCdna4KInterleavedLayout, &kTritonCdna4RowInterleavedLayout}) {
    expect_refusal(*layout, 384, 256, "hidden size must be a multiple of 256, found 384");
    expect_refusal(*layout, 256, 384, "intermediate size must be a multiple of 256, found 384");
  }
  expect_refusal(kTriton38StridedKInterleavedLayout, 96, 64,
                 "hidden size must be a multiple of 64, found 96");
  for (const Layout* layout : {&kTriton38Gfx1250Layout, &kTriton38Gfx1250KInterleavedLayout,
                               &kTriton38Gfx1250RowInterleavedLayout}) {
    expect_refusal(*layout, 320, 256, "hidden size must be a multiple of 128, found 320");
    expect_refusal(*layout, 256, 192, "intermediate size must be a multiple of 128, found 192");
  }
}

TEST(TritonLayouts, EmptyRanks) {
  EXPECT_EQ(run_case(kTritonHopperLayout, layer_of(0, 64, 64), Slot::kW13Weight).out.size(), 0U);
  EXPECT_EQ(run_case(kTritonHopperLayout, layer_of(2, 64, 0), Slot::kW13Weight).out.size(), 0U);
  EXPECT_EQ(run_case(kTritonBlackwellLayout, layer_of(2, 64, 0), Slot::kW2WeightScale).out.size(),
            0U);
}

}  // namespace
}  // namespace mxfp4
