// Roundings between F32, BF16 and F16, against hand-written bit patterns and the definition of
// "nearest".
#include "lib/core/float_bits.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace mxfp4 {
namespace {

double f16_value(uint16_t v) {
  const int exponent = v >> 10 & 31;
  const double fraction = (v & 0x3FF) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (v & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(FloatBits, F16FromF32ByHand) {
  EXPECT_EQ(f16_from_f32(0x00000000), 0x0000);
  EXPECT_EQ(f16_from_f32(0x80000000), 0x8000);
  EXPECT_EQ(f16_from_f32(0x3F800000), 0x3C00);  // 1
  EXPECT_EQ(f16_from_f32(0xC0490FDB), 0xC248);  // -pi
  EXPECT_EQ(f16_from_f32(0x477FE000), 0x7BFF);  // 65504, the largest
  EXPECT_EQ(f16_from_f32(0x477FEFFF), 0x7BFF);
  EXPECT_EQ(f16_from_f32(0x477FF000), 0x7C00);  // 65520, a tie, goes to infinity
  EXPECT_EQ(f16_from_f32(0x7F800000), 0x7C00);
  EXPECT_EQ(f16_from_f32(0x38800000), 0x0400);  // 2^-14, the smallest normal
  EXPECT_EQ(f16_from_f32(0x387FFFFF), 0x0400);
  EXPECT_EQ(f16_from_f32(0x33800000), 0x0001);  // 2^-24
  EXPECT_EQ(f16_from_f32(0x33000000), 0x0000);  // 2^-25, a tie, goes to even
  EXPECT_EQ(f16_from_f32(0xB3000001), 0x8001);
  EXPECT_EQ(f16_from_f32(0x32FFFFFF), 0x0000);
  EXPECT_EQ(f16_from_f32(0x7FC00000), 0x7FFF);
  EXPECT_EQ(f16_from_f32(0xFF800001), 0x7FFF);
}

TEST(FloatBits, Bf16FromF32ByHand) {
  EXPECT_EQ(bf16_from_f32(0x3F808000), 0x3F80);  // a tie, goes to even
  EXPECT_EQ(bf16_from_f32(0x3F818000), 0x3F82);
  EXPECT_EQ(bf16_from_f32(0x3F808001), 0x3F81);
  EXPECT_EQ(bf16_from_f32(0x7F7FFFFF), 0x7F80);
  EXPECT_EQ(bf16_from_f32(0xFF800000), 0xFF80);
  EXPECT_EQ(bf16_from_f32(0x7F800001), 0x7FFF);
  EXPECT_EQ(bf16_from_f32(0xFF800001, kTorchBf16Nan), 0x7FC0);
  EXPECT_EQ(bf16_from_f32(0xFF800000, kTorchBf16Nan), 0xFF80);
}

TEST(FloatBits, E8m0IsTheNearestPowerOfTwo) {
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    EXPECT_EQ(e8m0_from_f32(exponent << 23), exponent);
    EXPECT_EQ(e8m0_from_f32(exponent << 23 | 0x80000000U), exponent);
  }
  EXPECT_EQ(e8m0_from_f32(0x3FBFFFFF), 0x7F);
  EXPECT_EQ(e8m0_from_f32(0x3FC00000), 0x80);  // 1.5: a tie of normal numbers goes up
  EXPECT_EQ(e8m0_from_f32(0x00400000), 0x00);  // a subnormal one down
  EXPECT_EQ(e8m0_from_f32(0x00400001), 0x01);
  EXPECT_EQ(e8m0_from_f32(0x7FC00000), 0xFF);
}

TEST(FloatBits, EveryF16ReturnsThroughF32) {
  for (unsigned v = 0; v < 0x10000; ++v) {
    const auto half = static_cast<uint16_t>(v);
    if ((v & 0x7FFF) > 0x7C00) continue;  // NaN
    ASSERT_EQ(f16_from_f32(f32_from_f16(half)), half) << v;
    if ((v & 0x7FFF) < 0x7C00) {
      ASSERT_EQ(std::bit_cast<float>(f32_from_f16(half)), f16_value(half)) << v;
    }
  }
}

TEST(FloatBits, F16IsTheNearest) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    // Exponents from below the smallest subnormal to just under the overflow.
    const uint32_t exponent = 98 + random() % 44;
    const uint32_t bits = (random() & 0x807FFFFFU) | exponent << 23;
    const uint16_t got = f16_from_f32(bits);
    ASSERT_LT(got & 0x7FFF, 0x7C00);
    const double value = std::bit_cast<float>(bits);
    const double error = std::abs(f16_value(got) - value);
    ASSERT_LE(error, std::abs(f16_value(static_cast<uint16_t>(got + 1)) - value)) << bits;
    if ((got & 0x7FFF) != 0) {
      ASSERT_LE(error, std::abs(f16_value(static_cast<uint16_t>(got - 1)) - value)) << bits;
    }
  }
}

}  // namespace
}  // namespace mxfp4
