// How Hopper's value layout mixes the bits of four codes in 16: the formula, stated in
// lib/layouts/triton_hopper.cpp, and tables of the bits that each code and each nibble of the half
// contributes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels::hopper {

// The four codes that share a half of a word; bits from 4 on are ignored.
struct Codes {
  uint32_t a, b, c, d;
};

constexpr uint32_t mix(const Codes& codes) {
  const auto [a, b, c, d] = codes;
  return (a & 8) << 12 | (d & 8) << 11 | (d & 1) << 13 | (b & 8) << 9 | (d & 6) << 9 |
         (c & 8) << 6 | (a & 7) << 6 | (b & 7) << 3 | (c & 7);
}

constexpr Codes unmix(uint32_t half) {
  return {(half >> 12 & 8) | (half >> 6 & 7), (half >> 9 & 8) | (half >> 3 & 7),
          (half >> 6 & 8) | (half & 7), (half >> 11 & 8) | (half >> 9 & 6) | (half >> 13 & 1)};
}

using Table = std::array<uint8_t, 16>;

template <class F>
constexpr Table table(F entry) {
  Table made{};
  for (uint32_t i = 0; i < made.size(); ++i) made[i] = static_cast<uint8_t>(entry(i));
  return made;
}

// The bits that code i contributes to the low and to the high byte of its half. The low byte needs
// no table of c, which gives it three low bits as they are, nor of d, which gives it nothing.
inline constexpr Table kLowOfA = table([](uint32_t i) { return mix({i, 0, 0, 0}); });
inline constexpr Table kLowOfB = table([](uint32_t i) { return mix({0, i, 0, 0}); });
inline constexpr Table kHighOfA = table([](uint32_t i) { return mix({i, 0, 0, 0}) >> 8; });
inline constexpr Table kHighOfB = table([](uint32_t i) { return mix({0, i, 0, 0}) >> 8; });
inline constexpr Table kHighOfC = table([](uint32_t i) { return mix({0, 0, i, 0}) >> 8; });
inline constexpr Table kHighOfD = table([](uint32_t i) { return mix({0, 0, 0, i}) >> 8; });
// The bits that nibbles 0 to 3 of a half contribute to each code; tables of zeros are left out.
// Nibble 0 gives c its three low bits.
inline constexpr Table kAOf1 = table([](uint32_t i) { return unmix(i << 4).a; });
inline constexpr Table kAOf2 = table([](uint32_t i) { return unmix(i << 8).a; });
inline constexpr Table kAOf3 = table([](uint32_t i) { return unmix(i << 12).a; });
inline constexpr Table kBOf0 = table([](uint32_t i) { return unmix(i).b; });
inline constexpr Table kBOf1 = table([](uint32_t i) { return unmix(i << 4).b; });
inline constexpr Table kBOf3 = table([](uint32_t i) { return unmix(i << 12).b; });
inline constexpr Table kCOf2 = table([](uint32_t i) { return unmix(i << 8).c; });
inline constexpr Table kDOf2 = table([](uint32_t i) { return unmix(i << 8).d; });
inline constexpr Table kDOf3 = table([](uint32_t i) { return unmix(i << 12).d; });

}  // namespace mxfp4::kernels::hopper
