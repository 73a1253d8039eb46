// HUMMING's outputs for quantized activations with newer humming-kernels, against the index
// formulas of its kernels and the rounding rule in floating point, position by position.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <utility>

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
using test::shifted;
using test::u16_at;

constexpr int64_t kGroups = kPaddedK / 32;

// One w2: codes and scale bytes, both padded.
class PaddedW2 {
 public:
  PaddedW2(const LayerBytes& layer, int64_t expert, bool repeats_largest)
      : layer_(layer), expert_(expert), repeats_largest_(repeats_largest) {}

  [[nodiscard]] unsigned code(int64_t n, int64_t k) const {
    return test::padded_w2_code(layer_, expert_, n, k);
  }
  [[nodiscard]] int scale(int64_t n, int64_t g) const {
    if (n >= kW2N) return 127;
    if (g < kW2K / 32) return stored(n, g);
    return repeats_largest_ ? std::max(stored(n, 0), stored(n, 1)) : 127;
  }
  // The smallest and the largest scale byte of rows first .. last - 1.
  [[nodiscard]] std::pair<int, int> range(int64_t first, int64_t last) const {
    std::pair<int, int> range{255, 0};
    for (int64_t n = first; n < last; ++n) {
      for (int64_t g = 0; g < kGroups; ++g) {
        range = {std::min(range.first, scale(n, g)), std::max(range.second, scale(n, g))};
      }
    }
    return range;
  }

 private:
  [[nodiscard]] int stored(int64_t n, int64_t g) const {
    return static_cast<int>(
        at(layer_.slots.at(Slot::kW2WeightScale), (expert_ * kW2N + n) * (kW2K / 32) + g));
  }
  const LayerBytes& layer_;
  int64_t expert_;
  bool repeats_largest_;
};

LayerBytes layer_with_scales(int low, int high) {
  LayerBytes layer(kHummingDims, std::nullopt);
  for (std::byte& s : layer.slots[Slot::kW2WeightScale]) {
    s = static_cast<std::byte>(low + std::to_integer<int>(s) % (high - low + 1));
  }
  return layer;
}

// Where a code's magnitude and its sign lie: nibble numbers in one expert's words.
struct Place {
  int64_t magnitude, sign;
};
Place int8_place(int64_t n, int64_t k) {
  const int64_t c = 128 * (n / 32) + 16 * (n % 8) + 4 * (k % 16 / 4) + n % 32 / 8;
  const int64_t nibble = 8 * (k / 32 * 4 * kPaddedN + c) + 2 * (k % 4) + k / 16 % 2;
  return {nibble, nibble};
}
Place fp8_place(int64_t n, int64_t k) {
  const int64_t sign = int8_place(n, k).sign;
  return {sign / 8 * 8 + 4 * (k / 16 % 2) + k % 4, sign};
}
Place fp8_packed_k_place(int64_t n, int64_t k) {
  const int64_t c =
      128 * (n / 16) + 16 * (n % 8) + 4 * (k % 16 / 4) + 2 * (k % 64 / 32) + n % 16 / 8;
  const int64_t word = 8 * (k / 64 * 8 * kPaddedN + c);
  return {word + 4 * (k / 16 % 2) + k % 4, word + 2 * (k % 4) + k / 16 % 2};
}

// The second scale of a row: an F32 of its expert or a BF16 of its own.
float second_scale(const Bytes& bytes, int64_t expert, int64_t n, bool by_row) {
  uint32_t bits = 0;
  if (by_row) {
    const int64_t c = 32 * (n / 32) + 8 * (n % 8 / 2) + 2 * (n % 32 / 8) + n % 2;
    bits = u16_at(bytes, expert * kPaddedN + c) << 16;
  } else {
    bits = u16_at(bytes, 2 * expert) | u16_at(bytes, 2 * expert + 1) << 16;
  }
  return std::bit_cast<float>(bits);
}

struct Rounding {
  const Layout* layout;
  Place (*place)(int64_t, int64_t);
  int span, lift;
  bool by_row;
  bool repeats_largest = true;
  const char* second = "w2_weight_scale_2";
};

void expect_rounded(const Rounding& want, int low, int high) {
  SCOPED_TRACE(testing::Message() << id_of(*want.layout) << " " << low << " to " << high);
  const LayerBytes layer = layer_with_scales(low, high);
  const auto outputs = make_outputs(*want.layout, layer.input);
  ASSERT_EQ(outputs.size(), 6U);
  const Output& weight = output_of(outputs, "w2_weight");
  const Output& scale = output_of(outputs, "w2_weight_scale");
  const Output& second = output_of(outputs, want.second);
  EXPECT_NE(weight.lost, "");
  EXPECT_FALSE(second.restores_slot);
  const Bytes codes = layer.pack(weight);
  const Bytes scales = layer.pack(scale);
  const Bytes seconds = layer.pack(second);
  const Bytes restored_codes = layer.unpack(weight, outputs);
  const Bytes restored = layer.unpack(scale, outputs);
  for (int64_t e = 0; e < 2; ++e) {
    const PaddedW2 w2(layer, e, want.repeats_largest);
    for (int64_t n = 0; n < kPaddedN; ++n) {
      const auto [smallest, largest] = want.by_row ? w2.range(n, n + 1) : w2.range(0, kPaddedN);
      const int base = std::max(smallest, largest - want.span);
      // Base 255 is infinite, halved or not.
      const float factor = want.by_row && n >= kW2N ? 0.0F : std::ldexp(1.0F, base - 127) / 2;
      ASSERT_EQ(second_scale(seconds, e, n, want.by_row), factor) << e << " " << n;
      for (int64_t k = 0; k < kPaddedK; ++k) {
        const int64_t g = k / 32;
        const int clamped = std::max(w2.scale(n, g), base);
        const unsigned code = shifted(w2.code(n, k), clamped - w2.scale(n, g));
        const Place place = want.place(n, k);
        const int64_t expert = e * kPaddedN * kPaddedK;
        ASSERT_EQ(code_at(codes, expert + place.magnitude) & 7U, code & 7U) << n << " " << k;
        ASSERT_EQ(code_at(codes, expert + place.sign) & 8U, code & 8U) << n << " " << k;
        const int64_t column = 64 * (n / 64) + 8 * (n % 8) + n % 64 / 8;
        ASSERT_EQ(static_cast<int>(at(scales, (e * kGroups + g) * kPaddedN + column)),
                  clamped - base + want.lift);
        if (n >= kW2N || k >= kW2K) continue;
        ASSERT_EQ(code_at(restored_codes, (e * kW2N + n) * kW2K + k), code);
        ASSERT_EQ(static_cast<int>(at(restored, (e * kW2N + n) * (kW2K / 32) + g)), clamped);
      }
    }
  }
}

constexpr Rounding kInt8{&kHummingInt8Layout, int8_place, 3, 0, true};
constexpr Rounding kFp8{&kHummingFp8Layout, fp8_place, 11, 1, false};
constexpr Rounding kFp8PackedK{&kHummingFp8PackedKLayout, fp8_packed_k_place, 11, 1, false};
constexpr Rounding kFp8Global{&kHummingFp8GlobalLayout, fp8_place, 11, 1, false, false,
                              "w2_global_scale"};

TEST(HummingQuantized, RoundsToTheSpan) {
  expect_rounded(kInt8, 115, 131);
  expect_rounded(kFp8, 100, 140);
  expect_rounded(kFp8PackedK, 100, 140);
  expect_rounded(kFp8Global, 100, 140);
}
TEST(HummingQuantized, KeepsScalesThatFitTheSpan) {
  expect_rounded(kInt8, 120, 123);
  expect_rounded(kFp8, 120, 131);
}
// Rows of padding have 127, which counts for an expert, not for a row.
TEST(HummingQuantized, TakesScalesFarFromThePadding) {
  for (const Rounding& rounding : {kInt8, kFp8, kFp8Global}) {
    expect_rounded(rounding, 0, 4);
    expect_rounded(rounding, 250, 255);
  }
}

TEST(HummingQuantized, Shapes) {
  const LayerBytes layer(kHummingDims, DType::kBF16);
  const auto spec = [&](const Layout& layout, std::string_view name) {
    return output_of(make_outputs(layout, layer.input), name).spec;
  };
  EXPECT_EQ(spec(kHummingInt8Layout, "w2_weight"), (TensorSpec{DType::kI32, {2, 4, 1024}}));
  EXPECT_EQ(spec(kHummingInt8Layout, "w2_weight_scale_2"), (TensorSpec{DType::kBF16, {2, 256}}));
  EXPECT_EQ(spec(kHummingFp8Layout, "w13_weight_scale_2"), (TensorSpec{DType::kF32, {2}}));
  EXPECT_EQ(spec(kHummingFp8PackedKLayout, "w2_weight"), (TensorSpec{DType::kI32, {2, 2, 2048}}));
  EXPECT_EQ(spec(kHummingFp8Layout, "w2_bias"), (TensorSpec{DType::kBF16, {2, 256}}));
  EXPECT_EQ(spec(kHummingUmmaLayout, "w2_weight"), (TensorSpec{DType::kI32, {2, 256, 16}}));
  EXPECT_EQ(spec(kHummingUmmaLayout, "w2_weight_scale"), (TensorSpec{DType::kI32, {2, 1, 256}}));
  EXPECT_EQ(spec(kHummingMxmmaFp8Layout, "w2_weight_scale"),
            (TensorSpec{DType::kI32, {2, 2, 128}}));
  EXPECT_EQ(spec(kHummingMxmmaFp4Layout, "w2_weight"), (TensorSpec{DType::kI32, {2, 256, 16}}));
}

void expect_refuses(const Layout& layout, std::byte low, std::byte fits, std::byte too_large,
                    const char* message) {
  LayerBytes layer({1, 256, 128}, std::nullopt);
  Bytes& scales = layer.slots[Slot::kW2WeightScale];
  std::ranges::fill(scales, low);
  scales[3] = fits;
  const auto check = [&] {
    return check_granule(layout, layer.input, Slot::kW2WeightScale,
                         layer.granule(Slot::kW2WeightScale, 0));
  };
  EXPECT_EQ(check(), "");
  scales[3] = too_large;
  try {
    check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), message);
  }
  // The other end lies in another row, which counts where rows share a base.
  std::ranges::fill(scales, low);
  std::fill_n(scales.begin(), 4, too_large);
  if (&layout == &kHummingInt8Layout) {
    EXPECT_EQ(check(), "");
  } else {
    EXPECT_THROW(check(), Error);
  }
}

TEST(HummingQuantized, RefusesScalesThatAreTooFarApart) {
  expect_refuses(kHummingInt8Layout, std::byte{100}, std::byte{230}, std::byte{231},
                 "scale bytes of a row may lie at most 130 apart with 8-bit activations, found 100 "
                 "to 231");
  expect_refuses(kHummingFp8Layout, std::byte{100}, std::byte{238}, std::byte{239},
                 "scale bytes of an expert may lie at most 138 apart with 8-bit activations, found "
                 "100 to 239");
}

// The second scale of a row has the params dtype; F16 ends at 2^-24 and at 2^15.
TEST(HummingQuantized, WritesF16SecondScales) {
  LayerBytes layer = layer_with_scales(115, 131);
  layer.input.parameters.params_dtype = "float16";
  const auto outputs = make_outputs(kHummingInt8Layout, layer.input);
  const Output& second = output_of(outputs, "w2_weight_scale_2");
  EXPECT_EQ(second.spec.dtype, DType::kF16);
  const Bytes seconds = layer.pack(second);
  const PaddedW2 w2(layer, 0, true);
  const auto [smallest, largest] = w2.range(0, 1);
  const int base = std::max(smallest, largest - 3);
  EXPECT_EQ(u16_at(seconds, 0), static_cast<unsigned>(base - 128 + 15) << 10);
  EXPECT_EQ(u16_at(seconds, kPaddedN - 1), 0U);
  const Bytes restored = layer.unpack(output_of(outputs, "w2_weight_scale"), outputs);
  EXPECT_EQ(static_cast<int>(at(restored, 0)), std::max(w2.scale(0, 0), base));

  Bytes& scales = layer.slots[Slot::kW2WeightScale];
  const auto refusal_of = [&](int scale) {
    std::ranges::fill(scales, static_cast<std::byte>(scale));
    try {
      return check_granule(kHummingInt8Layout, layer.input, Slot::kW2WeightScale,
                           layer.granule(Slot::kW2WeightScale, 0));
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal_of(104), "");
  EXPECT_EQ(refusal_of(143), "");
  EXPECT_EQ(refusal_of(103),
            "float16 has no number for the second scale of a row: 2^-25, from scale bytes 103 to "
            "103");
  EXPECT_NE(refusal_of(144), "");
}

// Layouts that only move codes and scale bytes: nibble and byte numbers in one expert.
using Index = int64_t (*)(int64_t, int64_t);
void expect_moved(const Layout& layout, Index code_place, Index scale_place) {
  const LayerBytes layer(kHummingDims, DType::kBF16);
  const auto outputs = make_outputs(layout, layer.input);
  const Bytes codes = layer.pack(output_of(outputs, "w2_weight"));
  const Bytes scales = layer.pack(output_of(outputs, "w2_weight_scale"));
  for (int64_t e = 0; e < 2; ++e) {
    const PaddedW2 w2(layer, e, false);
    for (int64_t n = 0; n < kPaddedN; ++n) {
      for (int64_t k = 0; k < kPaddedK; ++k) {
        ASSERT_EQ(code_at(codes, e * kPaddedN * kPaddedK + code_place(n, k)), w2.code(n, k))
            << id_of(layout) << " " << n << " " << k;
      }
      for (int64_t g = 0; g < kGroups; ++g) {
        ASSERT_EQ(static_cast<int>(at(scales, e * kPaddedN * kGroups + scale_place(n, g))),
                  w2.scale(n, g))
            << id_of(layout) << " " << n << " " << g;
      }
    }
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(HummingQuantized, UmmaKeepsCodesAndTilesScales) {
  expect_moved(
      kHummingUmmaLayout, [](int64_t n, int64_t k) { return n * kPaddedK + k; },
      [](int64_t n, int64_t g) {
        return 4 * (g / 4 * kPaddedN + 128 * (n / 128) + 4 * (n % 32) + n % 128 / 32) + g % 4;
      });
}

TEST(HummingQuantized, MxmmaFp8TilesBoth) {
  expect_moved(
      kHummingMxmmaFp8Layout, [](int64_t n, int64_t k) { return int8_place(n, k).sign; },
      [](int64_t n, int64_t g) {
        return 4 * (g / 2 * kPaddedN / 2 + 8 * (n / 16) + n % 8) + 2 * (n % 16 / 8) + g % 2;
      });
}

TEST(HummingQuantized, MxmmaFp4TilesHadRegistersOfTheirOwnBefore) {
  expect_moved(
      kHummingMxmmaFp4TilesLayout,
      [](int64_t n, int64_t k) {
        const int64_t c =
            128 * (n / 16) + 16 * (n % 8) + 4 * (k % 32 / 8) + 2 * (n % 16 / 8) + k % 64 / 32;
        return 8 * (k / 64 * 8 * kPaddedN + c) + k % 8;
      },
      [](int64_t n, int64_t g) { return 4 * (g / 4 * kPaddedN + n) + g % 4; });
}

TEST(HummingQuantized, MxmmaFp4PutsBlocksOfAColumnTogether) {
  expect_moved(
      kHummingMxmmaFp4Layout,
      [](int64_t n, int64_t k) { return 32 * (k / 32 * kPaddedN + n) + k % 32; },
      [](int64_t n, int64_t g) { return 4 * (g / 4 * kPaddedN + n) + g % 4; });
}

}  // namespace
}  // namespace mxfp4
