#include "lib/steps/recodings.hpp"

#include <algorithm>

#include "lib/steps/element_map.hpp"

namespace mxfp4 {
namespace {

constexpr int kE5m0Bias = 127 - 15;
constexpr int kLargestE5m0 = 30;
constexpr int kE5m0Shift = 3;

constexpr uint32_t kSigns = 0x88888888U;

// Exchanges two sets of nibbles that lie `shift` bits apart; `low` marks the lower one.
constexpr uint32_t exchanged(uint32_t word, uint32_t low, int shift) {
  const uint32_t difference = (word ^ word >> shift) & low;
  return word ^ difference ^ difference << shift;
}

// Nibbles 0..7 as 0 2 4 6 1 3 5 7, and back.
constexpr uint32_t apart(uint32_t word) {
  return exchanged(exchanged(word, 0x00F000F0U, 4), 0x0000FF00U, 8);
}
constexpr uint32_t woven(uint32_t word) {
  return exchanged(exchanged(word, 0x0000FF00U, 8), 0x00F000F0U, 4);
}
static_assert(apart(0x76543210U) == 0x75316420U && woven(0x75316420U) == 0x76543210U);

}  // namespace

const Recoding kWidenBf16ToF32 = {
    "bf16 -> f32",
    2,
    4,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint32_t>(in, out, [](uint16_t v) { return uint32_t{v} << 16; });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint16_t>(in, out,
                                       [](uint32_t v) { return static_cast<uint16_t>(v >> 16); });
    },
};

const Recoding kE8m0ToF32 = {
    "e8m0 -> f32",
    1,
    4,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint32_t>(in, out, [](uint8_t v) { return uint32_t{v} << 23; });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint8_t>(in, out,
                                      [](uint32_t v) { return static_cast<uint8_t>(v >> 23); });
    },
};

const Recoding kE8m0ToE5m0 = {
    "e8m0 -> e5m0",
    1,
    1,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint8_t>(in, out, [](uint8_t v) {
        return static_cast<uint8_t>(std::clamp(v - kE5m0Bias, 0, kLargestE5m0) << kE5m0Shift);
      });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint8_t>(
          in, out, [](uint8_t v) { return static_cast<uint8_t>((v >> kE5m0Shift) + kE5m0Bias); });
    },
};

const Recoding kMagnitudesApart = {
    "e2m1 magnitudes apart",
    4,
    4,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint32_t>(
          in, out, [](uint32_t v) { return (v & kSigns) | apart(v & ~kSigns); });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint32_t>(
          in, out, [](uint32_t v) { return (v & kSigns) | woven(v & ~kSigns); });
    },
    true,
};

}  // namespace mxfp4
