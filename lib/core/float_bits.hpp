// Conversions between the bit patterns of F32, BF16 and F16, rounding to nearest even. Widening is
// exact and keeps NaN payloads. Rounding makes any NaN 0x7FFF, as the GPU's conversion instructions
// do, except where a function says otherwise.
#pragma once

#include <bit>
#include <cstdint>

namespace mxfp4 {

[[nodiscard]] constexpr uint32_t f32_from_bf16(uint16_t v) { return uint32_t{v} << 16; }

inline constexpr uint16_t kGpuNan = 0x7FFF;
// The bits that torch writes when it rounds on the CPU.
inline constexpr uint16_t kTorchBf16Nan = 0x7FC0;

[[nodiscard]] constexpr uint16_t bf16_from_f32(uint32_t v, uint16_t nan = kGpuNan) {
  if ((v & 0x7FFFFFFFU) > 0x7F800000U) return nan;
  return static_cast<uint16_t>((v + 0x7FFFU + ((v >> 16) & 1U)) >> 16);
}

// Values that are too large become infinity, too small ones a subnormal or a zero of the same sign.
[[nodiscard]] constexpr uint16_t f16_from_f32(uint32_t v) {
  const uint32_t sign = v >> 16 & 0x8000U;
  const uint32_t magnitude = v & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return kGpuNan;
  if (magnitude >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7C00U);  // 2^16
  if (magnitude < 0x33000000U) return static_cast<uint16_t>(sign);             // under 2^-25
  const uint32_t exponent = magnitude >> 23;  // biased by 127; F16 is normal from 113 on
  // The significand with `drop` bits too many; its leading one adds 1 to the exponent field.
  const uint32_t drop = exponent >= 113 ? 13 : 126 - exponent;
  const uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
  const uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  const uint32_t half = (1U << (drop - 1)) - 1 + ((significand >> drop) & 1U);
  return static_cast<uint16_t>(sign | (base + ((significand + half) >> drop)));
}

[[nodiscard]] constexpr uint32_t f32_from_f16(uint16_t v) {
  const uint32_t sign = (uint32_t{v} & 0x8000U) << 16;
  const uint32_t exponent = v >> 10 & 31U;
  const uint32_t fraction = v & 0x3FFU;
  if (exponent == 31) return sign | 0x7F800000U | fraction << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  const auto shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 21;  // to bit 10
  return sign | (113 - shift) << 23 | (fraction << shift & 0x3FFU) << 13;
}

// The E8M0 byte of the nearest power of two, ties to an even significand, without the sign; 255 for
// infinity and NaN (torch, Float8_e8m0fnu.h, fp8e8m0fnu_from_fp32_value).
[[nodiscard]] constexpr uint8_t e8m0_from_f32(uint32_t v) {
  const uint32_t exponent = v >> 23 & 0xFFU;
  const uint32_t fraction = v & 0x7FFFFFU;
  constexpr uint32_t kHalf = 0x400000U;
  const bool up = fraction > kHalf || (fraction == kHalf && exponent > 0);
  return static_cast<uint8_t>(exponent != 0xFF && up ? exponent + 1 : exponent);
}

}  // namespace mxfp4
