// AITER's int4, number by number: against its index formulas, and the rounding in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lib/core/error.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "tests/unit/layer_bytes.hpp"

namespace mxfp4 {
namespace {

using test::at;
using test::Bytes;
using test::code_at;
using test::LayerBytes;
using test::output_of;
using test::u16_at;

constexpr LayerDims kDims{2, 128, 64};
constexpr std::array<double, 8> kValues = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// The nearest number of eight significant bits, ties to even: BF16 without its limits.
double bf16(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

// Scale bytes from `low` on, one after the other, and groups whose largest codes differ.
LayerBytes layer_from(int low) {
  LayerBytes layer(kDims, DType::kBF16);
  for (const Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    int next = 0;
    for (std::byte& s : layer.slots[slot]) s = static_cast<std::byte>(low + next++ / 8 % 16);
  }
  for (const Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    Bytes& bytes = layer.slots[slot];
    for (size_t i = 0; i < bytes.size(); ++i) {
      const unsigned count = i / 16 % 8 + 1;
      const auto both = std::to_integer<unsigned>(bytes[i]);
      bytes[i] = static_cast<std::byte>((both & 0x88U) | (both >> 4 & 7U) % count << 4 |
                                        (both & 7U) % count);
    }
  }
  return layer;
}

struct Int4Matrix {
  const char* weight;
  const char* scale;
  Slot codes, scales;
  int64_t n, k;
};
constexpr Int4Matrix kMatrices[] = {
    {"w13_weight", "w13_weight_scale", Slot::kW13Weight, Slot::kW13WeightScale,
     2 * kDims.intermediate_size, kDims.hidden_size},
    {"w2_weight", "w2_weight_scale", Slot::kW2Weight, Slot::kW2WeightScale, kDims.hidden_size,
     kDims.intermediate_size}};

void expect_int4(const LayerBytes& layer, const Int4Matrix& m) {
  const auto outputs = make_outputs(kAiterInt4Layout, layer.input);
  const Bytes numbers = layer.pack(output_of(outputs, m.weight));
  const Bytes scales = layer.pack(output_of(outputs, m.scale));
  const Bytes& codes = layer.slots.at(m.codes);
  const int64_t groups = m.k / 32;
  for (int64_t row = 0; row < kDims.num_experts * m.n; ++row) {
    const int64_t e = row / m.n;
    const int64_t n = row % m.n;
    for (int64_t g = 0; g < groups; ++g) {
      const double power =
          std::ldexp(1, static_cast<int>(at(layer.slots.at(m.scales), row * groups + g)) - 127);
      double largest = bf16(1e-6);
      for (int64_t k = 32 * g; k < 32 * g + 32; ++k) {
        largest = std::max(largest, kValues[code_at(codes, row * m.k + k) & 7U] * power);
      }
      const double scale = bf16(largest / 7);
      const unsigned bits = u16_at(scales, e * m.n * groups + (g / 2 * m.n + n) * 2 + g % 2);
      ASSERT_EQ(std::bit_cast<float>(bits << 16), scale) << m.scale << " " << row << " " << g;
      for (int64_t k = 32 * g; k < 32 * g + 32; ++k) {
        const unsigned code = code_at(codes, row * m.k + k);
        const double number =
            std::min(7.0, std::nearbyint(bf16(kValues[code & 7U] * power / scale)));
        const int64_t byte = e * m.n * m.k / 2 + 128 * (n / 16 * (m.k / 16) + k / 16) +
                             8 * (n % 16) + 4 * (k % 16 / 8) + k % 4;
        const int want = static_cast<int>((code & 8U) != 0 ? -number : number);
        ASSERT_EQ(code_at(numbers, 2 * byte + k % 8 / 4), static_cast<unsigned>(want) & 15U)
            << m.weight << " " << row << " " << k << " code " << code << " power " << power;
      }
    }
  }
}

TEST(AiterInt4, RoundsEveryCodeAtEveryScale) {
  for (const int low : {0, 96, 104, 120, 237}) {
    SCOPED_TRACE(low);
    const LayerBytes layer = layer_from(low);
    for (const Int4Matrix& m : kMatrices) expect_int4(layer, m);
  }
}

TEST(AiterInt4, GivesNothingBack) {
  const LayerBytes layer = layer_from(120);
  const auto outputs = make_outputs(kAiterInt4Layout, layer.input);
  ASSERT_EQ(outputs.size(), 6U);
  for (const Output& output : outputs) {
    const bool bias = output.name.ends_with("bias");
    EXPECT_EQ(output.restores_slot, bias) << output.name;
    EXPECT_EQ(output.lost.empty(), bias) << output.name;
  }
  EXPECT_EQ(layer.pack(output_of(outputs, "w13_bias")), layer.slots.at(Slot::kW13Bias));
}

// Infinite and NaN weights: no two devices need agree on their integers.
TEST(AiterInt4, RefusesScalesThatBf16CannotHold) {
  const LayerBytes layer = layer_from(120);
  const auto check = [&](Slot slot, unsigned byte) {
    const Bytes scales = {std::byte{0}, static_cast<std::byte>(byte)};
    return check_granule(kAiterInt4Layout, layer.input, slot, scales);
  };
  EXPECT_EQ(check(Slot::kW13WeightScale, 252), "");
  for (const unsigned byte : {253U, 254U, 255U}) {
    EXPECT_THROW((void)check(Slot::kW13WeightScale, byte), Error) << byte;
    EXPECT_THROW((void)check(Slot::kW2WeightScale, byte), Error) << byte;
    EXPECT_EQ(check(Slot::kW2Weight, byte), "") << byte;
  }
}

TEST(AiterInt4, WantsPairsOfGroups) {
  for (const LayerDims dims : {LayerDims{1, 96, 64}, LayerDims{1, 64, 96}}) {
    EXPECT_THROW((void)make_outputs(kAiterInt4Layout, LayerBytes(dims, std::nullopt).input), Error);
  }
}

}  // namespace
}  // namespace mxfp4
