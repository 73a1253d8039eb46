// MARLIN's outputs against the index formulas of its kernel, position by position.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "lib/core/error.hpp"
#include "lib/core/float_bits.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "tests/unit/layer_bytes.hpp"

namespace mxfp4 {
namespace {

using test::at;
using test::Bytes;
using test::code_at;
using test::LayerBytes;
using test::output_of;
using test::u16_at;

constexpr LayerDims kMarlinDims{2, 192, 96};  // w13: N 192, K 192; w2: N 192, K 96

// Column of bias n, and of scale row n in the one-group and fp8 forms.
int64_t bias_column(int64_t n) {
  return 32 * (n / 32) + 8 * (n % 8 / 2) + 2 * (n % 32 / 8) + n % 2;
}

int64_t marlin_scale_column(int64_t n) {
  return 64 * (n / 64) + 8 * (n % 8) + 4 * (n / 32 % 2) + 2 * (n / 8 % 2) + n / 16 % 2;
}

TEST(MarlinLayout, WeightCodesLieWhereTheKernelReadsThem) {
  const LayerBytes layer(kMarlinDims, DType::kBF16);
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  ASSERT_EQ(outputs.size(), 6U);
  const Output& output = output_of(outputs, "w2_weight");
  EXPECT_EQ(output.spec, (TensorSpec{DType::kI32, {2, 6, 384}}));
  const Bytes packed = layer.pack(output);
  const Bytes& loaded = layer.slots.at(Slot::kW2Weight);
  constexpr int64_t kN = 192;
  constexpr int64_t kK = 96;
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < kN; ++n) {
      for (int64_t k = 0; k < kK; ++k) {
        const int64_t c = 128 * (n / 64) + 16 * (n % 8) + 4 * (k % 8 / 2) + n % 64 / 16;
        const int64_t p = 4 * (k % 2) + 2 * (n / 8 % 2) + k / 8 % 2;
        const int64_t word = e * kN * kK / 8 + k / 16 * 2 * kN + c;
        ASSERT_EQ(code_at(packed, 8 * word + p), code_at(loaded, (e * kN + n) * kK + k))
            << e << " " << n << " " << k;
      }
    }
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(MarlinLayout, WorkedExamples) {
  LayerBytes layer({1, 64, 64}, DType::kBF16);
  for (auto& [slot, bytes] : layer.slots) std::ranges::fill(bytes, std::byte{0});
  // Row 9, column 3 of w2, group 1 of its scales, element 9 of its bias.
  layer.slots[Slot::kW2Weight][9 * 32 + 1] = std::byte{0xB0};
  layer.slots[Slot::kW2WeightScale][9 * 2 + 1] = std::byte{255};
  layer.slots[Slot::kW2Bias][9 * 2] = std::byte{7};
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  EXPECT_EQ(code_at(layer.pack(output_of(outputs, "w2_weight")), 8 * 20 + 6), 0xBU);
  EXPECT_EQ(at(layer.pack(output_of(outputs, "w2_weight_scale")), 64 + 10), 255U);
  EXPECT_EQ(u16_at(layer.pack(output_of(outputs, "w2_bias")), 3), 7U);
  const auto fp8 = make_outputs(kMarlinW4A8Fp8Layout, layer.input);
  EXPECT_EQ(code_at(layer.pack(output_of(fp8, "w2_weight")), 8 * 17 + 6), 0xBU);
}

TEST(MarlinLayout, ScalesAndBiasesMoveByFormula) {
  const LayerBytes layer(kMarlinDims, DType::kBF16);
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  const Output& output = output_of(outputs, "w13_weight_scale");
  EXPECT_EQ(output.spec, (TensorSpec{DType::kU8, {2, 6, 192}}));
  EXPECT_EQ(output.storage.torch_dtype, "float8_e8m0fnu");
  const Bytes packed = layer.pack(output);
  const Bytes bias = layer.pack(output_of(outputs, "w13_bias"));
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < 192; ++n) {
      for (int64_t g = 0; g < 6; ++g) {
        ASSERT_EQ(at(packed, (e * 6 + g) * 192 + marlin_scale_column(n)),
                  at(layer.slots.at(Slot::kW13WeightScale), (e * 192 + n) * 6 + g));
      }
      ASSERT_EQ(u16_at(bias, e * 192 + bias_column(n)),
                u16_at(layer.slots.at(Slot::kW13Bias), e * 192 + n));
    }
  }
}

TEST(MarlinLayout, SingleGroupScalesAreOrderedLikeBiasesWithMiddlesExchanged) {
  const LayerBytes layer({1, 128, 32}, std::nullopt);
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  const Bytes packed = layer.pack(output_of(outputs, "w2_weight_scale"));
  constexpr std::array<int64_t, 4> kExchanged = {0, 2, 1, 3};
  for (int64_t n = 0; n < 128; ++n) {
    const int64_t c = bias_column(n);
    ASSERT_EQ(at(packed, c / 4 * 4 + kExchanged.at(static_cast<size_t>(c % 4))),
              at(layer.slots.at(Slot::kW2WeightScale), n));
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(MarlinLayout, Fp8ActivationsHaveTheirOwnOrderAndShiftScalesBySix) {
  LayerBytes layer(kMarlinDims, std::nullopt);
  const auto outputs = make_outputs(kMarlinW4A8Fp8Layout, layer.input);
  ASSERT_EQ(outputs.size(), 4U);
  EXPECT_EQ(output_of(outputs, "w2_weight").spec, (TensorSpec{DType::kI32, {2, 6, 384}}));
  const Bytes codes = layer.pack(output_of(outputs, "w2_weight"));
  const Bytes scales = layer.pack(output_of(outputs, "w2_weight_scale"));
  constexpr int64_t kN = 192;
  constexpr int64_t kK = 96;
  for (int64_t n = 0; n < kN; ++n) {
    for (int64_t k = 0; k < kK; ++k) {
      const int64_t word =
          128 * (k / 32 * (kN / 32) + n / 32) + 16 * (n % 8) + 4 * (k % 16 / 4) + n % 32 / 8;
      const int64_t p = 2 * (k % 4) + k / 16 % 2;
      ASSERT_EQ(code_at(codes, 8 * word + p), code_at(layer.slots.at(Slot::kW2Weight), n * kK + k));
    }
    for (int64_t g = 0; g < kK / 32; ++g) {
      ASSERT_EQ(at(scales, g * kN + bias_column(n)),
                (at(layer.slots.at(Slot::kW2WeightScale), n * (kK / 32) + g) + 6) & 255U);
    }
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(MarlinLayout, Fp8RefusesScalesThatTheShiftWouldWrap) {
  LayerBytes layer({1, 64, 32}, std::nullopt);
  Bytes& scales = layer.slots[Slot::kW13WeightScale];
  std::ranges::fill(scales, std::byte{249});
  const auto check = [&](Slot slot) {
    return check_granule(kMarlinW4A8Fp8Layout, layer.input, slot, layer.granule(slot, 0));
  };
  EXPECT_EQ(check(Slot::kW13WeightScale), "");
  EXPECT_EQ(check(Slot::kW13Weight), "");  // codes may be anything
  scales[5] = std::byte{250};
  try {
    check(Slot::kW13WeightScale);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_STREQ(error.what(),
                 "the largest scale byte of an expert may be 249 with fp8 activations, found 250");
  }
  // Through float16 the same byte becomes 255; 142 is the largest that stays.
  layer.input.parameters.params_dtype = "float16";
  EXPECT_THROW(check(Slot::kW13WeightScale), Error);
  std::ranges::fill(scales, std::byte{142});
  EXPECT_EQ(check(Slot::kW13WeightScale), "");
}

// e8m0 -> f16 -> e8m0 by way of real float16 bits.
unsigned scale_through_f16(unsigned scale) {
  const uint32_t bits = scale == 255 ? 0x7FC00000U : scale == 0 ? 0x00400000U : scale << 23;
  const auto value = std::bit_cast<float>(f32_from_f16(f16_from_f32(bits)));
  if (!std::isfinite(value)) return 255;
  return value == 0 ? 0 : static_cast<unsigned>(std::ilogb(value) + 127);
}

TEST(MarlinLayout, Float16ParamsLoseScalesAndRoundBiases) {
  LayerBytes layer({1, 256, 64}, DType::kBF16);
  layer.input.parameters.params_dtype = "float16";
  Bytes& loaded = layer.slots[Slot::kW2WeightScale];
  for (size_t i = 0; i < loaded.size(); ++i) loaded[i] = static_cast<std::byte>(i);
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  const Output& scale = output_of(outputs, "w2_weight_scale");
  const Output& bias = output_of(outputs, "w13_bias");
  EXPECT_NE(scale.lost, "");
  EXPECT_NE(bias.lost, "");
  EXPECT_EQ(bias.spec, (TensorSpec{DType::kF16, {1, 128}}));
  const Bytes scales = layer.pack(scale);
  for (int64_t n = 0; n < 256; ++n) {
    for (int64_t g = 0; g < 2; ++g) {
      ASSERT_EQ(at(scales, g * 256 + marlin_scale_column(n)),
                scale_through_f16(at(loaded, n * 2 + g)));
    }
  }
  const Bytes biases = layer.pack(bias);
  for (int64_t n = 0; n < 128; ++n) {
    const auto value = static_cast<uint16_t>(u16_at(layer.slots.at(Slot::kW13Bias), n));
    ASSERT_EQ(u16_at(biases, bias_column(n)), f16_from_f32(uint32_t{value} << 16));
  }
  EXPECT_EQ(output_of(outputs, "w2_weight").lost, "");
}

TEST(MarlinLayout, WideBiasesAreRoundedToTheParamsDtype) {
  const LayerBytes layer({1, 64, 32}, DType::kF32);
  const auto outputs = make_outputs(kMarlinW4A16Layout, layer.input);
  const Output& bias = output_of(outputs, "w2_bias");
  EXPECT_EQ(bias.spec.dtype, DType::kBF16);
  EXPECT_NE(bias.lost, "");
  const Bytes packed = layer.pack(bias);
  const Bytes& loaded = layer.slots.at(Slot::kW2Bias);
  for (int64_t n = 0; n < 64; ++n) {
    const uint32_t bits = u16_at(loaded, 2 * n) | u16_at(loaded, 2 * n + 1) << 16;
    ASSERT_EQ(u16_at(packed, bias_column(n)), bf16_from_f32(bits));
  }
}

TEST(MarlinLayout, RefusesRowsThatDoNotFillATile) {
  const LayerBytes layer({1, 160, 64}, std::nullopt);
  try {
    (void)make_outputs(kMarlinW4A16Layout, layer.input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_EQ(error.reference_type_name(), "RuntimeError");
    EXPECT_STREQ(error.what(), "w2_weight: size_n = 160 is not divisible by tile_n_size = 64");
  }
}

TEST(MarlinLayout, UnknownParamsDtypeIsAUsageError) {
  Target target;
  target.knobs["params_dtype"] = "float32";
  try {
    (void)layout_parameters(target);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(), "knob params_dtype: expected bfloat16 or float16, found 'float32'");
  }
}

}  // namespace
}  // namespace mxfp4
