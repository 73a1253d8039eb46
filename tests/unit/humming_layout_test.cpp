// HUMMING's outputs against the index formulas of its kernels and the requantisation rule in
// floating point, position by position.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/core/error.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "tests/unit/humming_w2.hpp"
#include "tests/unit/layer_bytes.hpp"

namespace mxfp4 {
namespace {

using test::at;
using test::Bytes;
using test::code_at;
using test::kHummingDims;
using test::kPaddedK;
using test::kPaddedN;
using test::kW2K;
using test::kW2N;
using test::LayerBytes;
using test::output_of;
using test::padded_w2_code;
using test::shifted;
using test::u16_at;

int64_t scale_column(int64_t n) { return 64 * (n / 64) + 8 * (n % 8) + n % 64 / 8; }

unsigned padded_scale(const LayerBytes& layer, int64_t e, int64_t n, int64_t g) {
  if (n >= kW2N || g >= kW2K / 32) return 127;
  return at(layer.slots.at(Slot::kW2WeightScale), (e * kW2N + n) * (kW2K / 32) + g);
}

// The nibble of (n, k) in its word, from the bits of n and k that it depends on.
using NibbleOf = int64_t (*)(int64_t n_8, int64_t k_8, int64_t k_1);

void expect_weight_tiles(const Layout& layout, NibbleOf nibble_of) {
  const LayerBytes layer(kHummingDims, DType::kBF16);
  const auto outputs = make_outputs(layout, layer.input);
  const Output& output = output_of(outputs, "w2_weight");
  EXPECT_EQ(output.spec, (TensorSpec{DType::kI32, {2, kPaddedK / 16, 2 * kPaddedN}}));
  const Bytes packed = layer.pack(output);
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < kPaddedN; ++n) {
      for (int64_t k = 0; k < kPaddedK; ++k) {
        const int64_t c = 128 * (n / 64) + 16 * (n % 8) + 4 * (k % 8 / 2) + n % 64 / 16;
        const int64_t p = nibble_of(n / 8 % 2, k / 8 % 2, k % 2);
        const int64_t word = (e * kPaddedK / 16 + k / 16) * 2 * kPaddedN + c;
        ASSERT_EQ(code_at(packed, 8 * word + p), padded_w2_code(layer, e, n, k))
            << e << " " << n << " " << k;
      }
    }
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(HummingLayout, MmaWeights) {
  expect_weight_tiles(kHummingMmaLayout, [](int64_t n_8, int64_t k_8, int64_t k_1) {
    return 4 * k_1 + 2 * n_8 + k_8;
  });
}
TEST(HummingLayout, WgmmaWeights) {
  expect_weight_tiles(kHummingWgmmaLayout, [](int64_t n_8, int64_t k_8, int64_t k_1) {
    return 4 * k_1 + 2 * k_8 + n_8;
  });
}
TEST(HummingLayout, NativeWeights) {
  expect_weight_tiles(kHummingMmaNativeLayout, [](int64_t n_8, int64_t k_8, int64_t k_1) {
    return 4 * n_8 + 2 * k_8 + k_1;
  });
}

// Exponents of F16 numbers in the upper five bits; what F16 does not have is clamped, and says so.
TEST(HummingLayout, Fp16ScalesAreF16Exponents) {
  LayerBytes layer(kHummingDims, std::nullopt);
  layer.input.parameters.params_dtype = "float16";
  const auto outputs = make_outputs(kHummingMmaFp16Layout, layer.input);
  const Output& output = output_of(outputs, "w2_weight_scale");
  EXPECT_NE(output.lost, "");
  const Bytes packed = layer.pack(output);
  const Bytes restored = layer.unpack(output, outputs);
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < kPaddedN; ++n) {
      for (int64_t g = 0; g < kPaddedK / 32; ++g) {
        const auto scale = static_cast<int>(padded_scale(layer, e, n, g));
        const int clamped = std::clamp(scale, 112, 142);
        const int64_t place = (e * kPaddedK / 32 + g) * kPaddedN + scale_column(n);
        ASSERT_EQ(static_cast<int>(at(packed, place)), 8 * (clamped - 112)) << n << " " << g;
        if (n >= kW2N || g >= kW2K / 32) continue;
        ASSERT_EQ(static_cast<int>(at(restored, (e * kW2N + n) * (kW2K / 32) + g)), clamped);
      }
    }
  }
}

TEST(HummingLayout, ScalesArePaddedWithOnesAndBiasesWithZeros) {
  const LayerBytes layer(kHummingDims, DType::kBF16);
  const auto outputs = make_outputs(kHummingMmaLayout, layer.input);
  const Output& output = output_of(outputs, "w2_weight_scale");
  EXPECT_EQ(output.spec, (TensorSpec{DType::kU8, {2, kPaddedK / 32, kPaddedN}}));
  EXPECT_EQ(output.storage.torch_dtype, "float8_e8m0fnu");
  const Bytes scales = layer.pack(output);
  const Bytes biases = layer.pack(output_of(outputs, "w2_bias"));
  ASSERT_EQ(biases.size(), 2U * kPaddedN * 2);
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < kPaddedN; ++n) {
      for (int64_t g = 0; g < kPaddedK / 32; ++g) {
        ASSERT_EQ(at(scales, (e * kPaddedK / 32 + g) * kPaddedN + scale_column(n)),
                  padded_scale(layer, e, n, g));
      }
      const int64_t c = 32 * (n / 32) + 8 * (n % 8 / 2) + 2 * (n % 32 / 8) + n % 2;
      ASSERT_EQ(u16_at(biases, e * kPaddedN + c),
                n < kW2N ? u16_at(layer.slots.at(Slot::kW2Bias), e * kW2N + n) : 0U);
    }
  }
}

TEST(HummingLayout, RefusesBiasesOfAnotherParamsDtype) {
  LayerBytes layer(kHummingDims, DType::kBF16);
  layer.input.parameters.params_dtype = "float16";
  try {
    (void)make_outputs(kHummingWgmmaLayout, layer.input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_STREQ(error.what(),
                 "bias dtype mismatched: expected torch.float16, found torch.bfloat16");
  }
  layer.input.loaded.bias.reset();
  EXPECT_EQ(make_outputs(kHummingWgmmaLayout, layer.input).size(), 4U);
}

// Requantises a w2 whose scale bytes lie in low..high, and checks all three outputs.
void expect_requantised(const std::string& input_dtype, int span, int halvings, int low, int high) {
  LayerBytes layer(kHummingDims, std::nullopt);
  layer.input.parameters.humming_input_dtype = input_dtype;
  for (std::byte& s : layer.slots[Slot::kW2WeightScale]) {
    s = static_cast<std::byte>(low + std::to_integer<int>(s) % (high - low + 1));
  }
  const auto outputs = make_outputs(kHummingW4A8Layout, layer.input);
  ASSERT_EQ(outputs.size(), 6U);
  const Output& weight = output_of(outputs, "w2_weight");
  EXPECT_EQ(weight.spec, (TensorSpec{DType::kI32, {2, kPaddedK / 32, 4 * kPaddedN}}));
  EXPECT_NE(weight.lost, "");
  const Output& scale = output_of(outputs, "w2_weight_scale");
  const Output& global = output_of(outputs, "w2_global_scale");
  EXPECT_EQ(global.spec, (TensorSpec{DType::kF32, {2}}));
  EXPECT_FALSE(global.restores_slot);
  const Bytes codes = layer.pack(weight);
  const Bytes scales = layer.pack(scale);
  const Bytes globals = layer.pack(global);
  const Bytes restored = layer.unpack(scale, outputs);
  const Bytes restored_codes = layer.unpack(weight, outputs);
  for (int64_t e = 0; e < 2; ++e) {
    int smallest = 255;
    int largest = 0;
    for (int64_t i = 0; i < kPaddedN * kPaddedK / 32; ++i) {
      const auto s =
          static_cast<int>(padded_scale(layer, e, i / (kPaddedK / 32), i % (kPaddedK / 32)));
      smallest = std::min(smallest, s);
      largest = std::max(largest, s);
    }
    const int base = largest - std::min(largest - smallest, span);
    float value = 0;
    std::memcpy(&value, globals.data() + 4 * e, 4);
    EXPECT_EQ(value, std::ldexp(1.0F, base - 127 - halvings));
    for (int64_t n = 0; n < kPaddedN; ++n) {
      for (int64_t k = 0; k < kPaddedK; ++k) {
        const int64_t g = k / 32;
        const auto s = static_cast<int>(padded_scale(layer, e, n, g));
        const unsigned want = shifted(padded_w2_code(layer, e, n, k), std::max(s, base) - s);
        const int64_t c = 128 * (n / 32) + 16 * (n % 8) + 4 * (k % 16 / 4) + n % 32 / 8;
        const int64_t p = 2 * (k % 4) + k / 16 % 2;
        const int64_t word = (e * kPaddedK / 32 + g) * 4 * kPaddedN + c;
        ASSERT_EQ(code_at(codes, 8 * word + p), want) << e << " " << n << " " << k;
        ASSERT_EQ(
            static_cast<int>(at(scales, (e * kPaddedK / 32 + g) * kPaddedN + scale_column(n))),
            std::max(s, base) - base);
        if (n >= kW2N || k >= kW2K) continue;
        ASSERT_EQ(code_at(restored_codes, (e * kW2N + n) * kW2K + k), want);
        ASSERT_EQ(static_cast<int>(at(restored, (e * kW2N + n) * (kW2K / 32) + g)),
                  std::max(s, base));
      }
    }
  }
}

TEST(HummingLayout, RequantisesForFp8) { expect_requantised("float8e4m3", 12, 0, 100, 140); }
TEST(HummingLayout, RequantisesForInt8) { expect_requantised("int8", 3, 1, 115, 131); }
TEST(HummingLayout, KeepsScalesThatFitTheSpan) {
  expect_requantised("float8e4m3", 12, 0, 120, 131);
}
// Where all scales are above or below 127, the padding's 127 is the smallest or the largest.
TEST(HummingLayout, PaddingTakesPartInTheRange) {
  expect_requantised("int8", 3, 1, 128, 129);
  expect_requantised("int8", 3, 1, 0, 4);
  expect_requantised("float8e4m3", 12, 0, 250, 255);
}

TEST(HummingLayout, UnpaddedMatrixUsesItsOwnRange) {
  LayerBytes layer({1, 256, 128}, std::nullopt);
  layer.input.parameters.humming_input_dtype = "int8";
  std::ranges::fill(layer.slots[Slot::kW2WeightScale], std::byte{0});
  std::ranges::fill(layer.slots[Slot::kW13WeightScale], std::byte{255});
  const auto outputs = make_outputs(kHummingW4A8Layout, layer.input);
  float value = 0;
  std::memcpy(&value, layer.pack(output_of(outputs, "w2_global_scale")).data(), 4);
  EXPECT_EQ(value, std::ldexp(1.0F, -128));
  std::memcpy(&value, layer.pack(output_of(outputs, "w13_global_scale")).data(), 4);
  EXPECT_TRUE(std::isinf(value));
  for (const char* name : {"w2_weight_scale", "w13_weight_scale"}) {
    const Output& scale = output_of(outputs, name);
    EXPECT_EQ(layer.unpack(scale, outputs), layer.slots.at(scale.slot)) << name;
  }
}

TEST(HummingLayout, RefusesScalesThatAreTooFarApart) {
  LayerBytes layer({1, 256, 128}, std::nullopt);
  layer.input.parameters.humming_input_dtype = "float8e4m3";
  Bytes& scales = layer.slots[Slot::kW2WeightScale];
  std::ranges::fill(scales, std::byte{100});
  scales[3] = std::byte{239};
  const auto check = [&] {
    return check_granule(kHummingW4A8Layout, layer.input, Slot::kW2WeightScale,
                         layer.granule(Slot::kW2WeightScale, 0));
  };
  EXPECT_EQ(check(), "");
  scales[3] = std::byte{240};
  try {
    check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_STREQ(error.what(),
                 "scale bytes of an expert may lie at most 139 apart with 8-bit activations, found "
                 "100 to 240");
  }
}

TEST(HummingLayout, RefusesAGlobalScaleThatIsNoPowerOfTwo) {
  LayerBytes layer({1, 256, 128}, std::nullopt);
  layer.input.parameters.humming_input_dtype = "int8";
  const auto outputs = make_outputs(kHummingW4A8Layout, layer.input);
  const Output& scale = output_of(outputs, "w2_weight_scale");
  const Combination& combine = *scale.combination;
  const Bytes own(static_cast<size_t>(combine.out_bytes));
  Bytes out(layer.slots.at(Slot::kW2WeightScale).size());
  for (float bad : {0.0F, -1.0F, 3.0F, std::nanf("")}) {
    Bytes stored(4);
    std::memcpy(stored.data(), &bad, 4);
    const std::vector<ConstBytes> others = {stored};
    EXPECT_THROW(combine.inverse(own, others, out), Error) << bad;
  }
}

}  // namespace
}  // namespace mxfp4
