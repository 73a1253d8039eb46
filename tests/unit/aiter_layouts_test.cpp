// The AITER layouts against their index formulas, written out with division and remainder.
#include "lib/layouts/aiter_layouts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "lib/core/error.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "tests/unit/layout_runner.hpp"

namespace mxfp4 {
namespace {

using namespace layout_test;

int64_t map_w(int64_t r, int64_t c, int64_t row_bytes) {
  return r / 16 * 16 * row_bytes + c / 16 * 256 + r % 16 * 16 + c % 16;
}

int64_t map_s(int64_t r, int64_t c, int64_t columns) {
  return r / 32 * 32 * columns + c / 8 * 256 + c % 4 * 64 + r % 16 * 4 + c / 4 % 2 * 2 + r / 16 % 2;
}

int64_t map_g(int64_t row) {
  const int64_t i = row / 2;
  return 32 * (i / 16) + 16 * (row % 2) + i % 16;
}

int64_t map_none(int64_t row) { return row; }

template <class Rows, class Tiles>
void expect_map(const Case& c, Rows rows, Tiles tiles) {
  Bytes want(c.in.size());
  for (int64_t e = 0; e < c.experts; ++e) {
    for (int64_t r = 0; r < c.loaded.rows; ++r) {
      for (int64_t k = 0; k < c.loaded.row_bytes; ++k) {
        const int64_t to = e * c.loaded.bytes() + tiles(rows(r), k, c.loaded.row_bytes);
        want.at(static_cast<size_t>(to)) = c.in_at(e, r, k);
      }
    }
  }
  EXPECT_EQ(c.out, want) << c.output.name;
}

LayoutInput layer() { return layer_of(2, 512, 256); }

TEST(AiterLayouts, W4a16SplitsPairsAndTiles) {
  expect_map(run_case(kAiterW4a16Layout, layer(), Slot::kW13Weight), map_g, map_w);
  expect_map(run_case(kAiterW4a16Layout, layer(), Slot::kW2Weight), map_none, map_w);
  expect_map(run_case(kAiterW4a16Layout, layer(), Slot::kW13WeightScale), map_g, map_s);
  expect_map(run_case(kAiterW4a16Layout, layer(), Slot::kW2WeightScale), map_none, map_s);
}

TEST(AiterLayouts, W4a4KeepsRowsAndTiles) {
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    expect_map(run_case(kAiterW4a4Layout, layer(), slot), map_none, map_w);
  }
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    expect_map(run_case(kAiterW4a4Layout, layer(), slot), map_none, map_s);
  }
}

TEST(AiterLayouts, WorkedExamples) {
  const LayoutInput input = layer_of(1, 256, 256);
  const auto offset = [&](const Layout& layout, Slot slot, int64_t row, int64_t column) {
    return set_offsets(packed_lone_byte(layout, input, slot, row, column, 1));
  };
  EXPECT_EQ(offset(kAiterW4a16Layout, Slot::kW13Weight, 3, 17), std::vector<size_t>{2321});
  EXPECT_EQ(offset(kAiterW4a16Layout, Slot::kW13WeightScale, 3, 5), std::vector<size_t>{71});
  EXPECT_EQ(offset(kAiterW4a4Layout, Slot::kW13Weight, 17, 17), std::vector<size_t>{2321});
  EXPECT_EQ(offset(kAiterW4a4Layout, Slot::kW13WeightScale, 17, 5), std::vector<size_t>{71});
}

TEST(AiterLayouts, ShapesDtypesAndFlags) {
  const auto shape = [](const Layout& layout, std::string_view name) {
    return output_named(layout, layer(), name).spec.shape;
  };
  EXPECT_EQ(shape(kAiterW4a16Layout, "w13_weight"), Shape({2, 512, 256}));
  EXPECT_EQ(shape(kAiterW4a16Layout, "w13_weight_scale"), Shape({1024, 16}));
  EXPECT_EQ(shape(kAiterW4a16Layout, "w2_weight_scale"), Shape({1024, 8}));
  EXPECT_EQ(shape(kAiterW4a4Layout, "w13_weight_scale"), Shape({2, 512, 16}));
  EXPECT_EQ(shape(kAiterW4a4Layout, "w2_weight_scale"), Shape({2, 512, 8}));
  for (const Layout* layout : {&kAiterW4a16Layout, &kAiterW4a4Layout}) {
    for (const Output& output : make_outputs(*layout, layer())) {
      const bool weight = output.name == "w13_weight" || output.name == "w2_weight";
      EXPECT_EQ(output.storage.torch_dtype, weight ? "float4_e2m1fn_x2" : "") << output.name;
      EXPECT_EQ(output.storage.flags.size(), weight ? 1U : 0U) << output.name;
    }
  }
}

TEST(AiterLayouts, W4a16BiasIsAllGatesThenAllUps) {
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    LayoutInput input = layer();
    input.loaded.bias = dtype;
    const Case c = run_case(kAiterW4a16Layout, input, Slot::kW13Bias);
    ASSERT_EQ(c.output.spec, (TensorSpec{DType::kF32, {2, 512}}));
    const auto size = static_cast<size_t>(dtype_bytes(dtype));
    for (size_t e = 0; e < 2; ++e) {
      for (size_t i = 0; i < 256; ++i) {
        for (size_t g = 0; g < 2; ++g) {
          uint32_t want = 0;  // a BF16 is the upper half of the F32
          std::byte* low = reinterpret_cast<std::byte*>(&want);
          std::memcpy(low + (4 - size), &c.in[(e * 512 + 2 * i + g) * size], size);
          uint32_t got = 0;
          std::memcpy(&got, &c.out[(e * 512 + g * 256 + i) * 4], 4);
          ASSERT_EQ(got, want) << e << " " << i << " " << g;
        }
      }
    }
  }
}

TEST(AiterLayouts, AbsentBiasesStayAbsent) {
  LayoutInput input = layer();
  input.loaded.bias.reset();
  EXPECT_EQ(make_outputs(kAiterW4a16Layout, input).size(), 4U);
  EXPECT_EQ(make_outputs(kAiterW4a4Layout, input).size(), 4U);
}

std::string refusal(const Layout& layout, const LayoutInput& input) {
  try {
    (void)make_outputs(layout, input);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return error.what();
  }
  return "";
}

TEST(AiterLayouts, RefuseOtherSizes) {
  for (const Layout* layout : {&kAiterW4a16Layout, &kAiterW4a4Layout, &kAiterW4a8Fp8Layout}) {
    LayoutInput input = layer_of(1, 128, 256);
    input.loaded.input_scales = true;
    EXPECT_NE(refusal(*layout, input).find("hidden size must be a multiple of 256, found 128"),
              std::string::npos);
    input.loaded.dims = {1, 256, 384};
    EXPECT_NE(
        refusal(*layout, input).find("intermediate size must be a multiple of 256, found 384"),
        std::string::npos);
  }
}

TEST(AiterLayouts, W4a8NeedsInputScales) {
  EXPECT_EQ(refusal(kAiterW4a8Fp8Layout, layer()),
            "W4A8 (AITER_MXFP4_FP8) requires static input scales, but found w13_input_scale or "
            "w2_input_scale is None.");
}

TEST(AiterLayouts, W4a8IsTritonsLayoutPlusInputScales) {
  LayoutInput input = layer();
  input.loaded.input_scales = true;
  const std::array<std::pair<const Layout*, const Layout*>, 4> pairs = {
      {{&kAiterW4a8Fp8Layout, &kTritonCdna4Layout},
       {&kAiterW4a8Triton38Cdna4Layout, &kTriton38Cdna4Layout},
       {&kAiterW4a8Triton38StridedLayout, &kTriton38StridedLayout},
       {&kAiterW4a8Triton38Gfx1250Layout, &kTriton38Gfx1250Layout}}};
  for (const auto& [aiter, triton] : pairs) {
    for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale,
                      Slot::kW2WeightScale, Slot::kW13Bias, Slot::kW2Bias}) {
      EXPECT_EQ(run_case(*aiter, input, slot).out, run_case(*triton, input, slot).out)
          << id_of(*aiter);
    }
    EXPECT_EQ(make_outputs(*aiter, input).size(), 8U);
    EXPECT_EQ(output_named(*aiter, input, "w2_input_scale").spec, (TensorSpec{DType::kF32, {}}));
  }
}

}  // namespace
}  // namespace mxfp4
