// What the tests of HUMMING's layouts share: sizes that both matrices pad, and the rounding of
// codes in floating point.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "lib/core/layer.hpp"
#include "tests/unit/layer_bytes.hpp"

namespace mxfp4::test {

// w13 128 x 160 -> 256 x 256; w2 160 x 64 -> 256 x 128.
inline constexpr LayerDims kHummingDims{2, 160, 64};
inline constexpr int64_t kW2N = 160, kW2K = 64, kPaddedN = 256, kPaddedK = 128;  // w2

// A code of w2 as padded, 0 in the padding.
inline unsigned padded_w2_code(const LayerBytes& layer, int64_t expert, int64_t n, int64_t k) {
  if (n >= kW2N || k >= kW2K) return 0;
  return code_at(layer.slots.at(Slot::kW2Weight), (expert * kW2N + n) * kW2K + k);
}

// The nearest code to a code's value times 2^-shift, ties to the larger magnitude.
inline unsigned shifted(unsigned code, int shift) {
  constexpr std::array<double, 8> kValues = {0, .5, 1, 1.5, 2, 3, 4, 6};
  if (code == 8) return 0;
  const double value = std::ldexp(kValues.at(code & 7U), -shift);
  unsigned best = 0;
  for (unsigned c = 1; c < 8; ++c) {
    if (std::abs(kValues.at(c) - value) <= std::abs(kValues.at(best) - value)) best = c;
  }
  return (code & 8U) | best;
}

}  // namespace mxfp4::test
