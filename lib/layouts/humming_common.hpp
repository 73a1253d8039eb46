// Parts that HUMMING's layouts share: each matrix padded at its end, rows N to a multiple of 256
// and columns K to a multiple of 128; the orders of scales and biases.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/layouts/humming_requantize.hpp"
#include "lib/layouts/mma_tiles.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

struct HummingMatrix : MoeMatrix {
  explicit HummingMatrix(const MoeMatrix& m);
  int64_t padded_n, padded_k;

  [[nodiscard]] PadMatrix pad_codes() const;
  [[nodiscard]] PadMatrix pad_scales() const;  // with 127
};

// The steps that pad, if there is anything to pad.
[[nodiscard]] Program humming_padding(const PadMatrix& pad);

// Words [E, K'/tile_columns, N' * tile_columns / 8] in the order `tiles` of one padded matrix.
[[nodiscard]] Output humming_weight_output(const LayoutInput& input, const HummingMatrix& m,
                                           Permute tiles, int64_t tile_columns);
// Scale bytes [E, K'/32, N']: (n, g) -> [g][64*(n/64) + 8*(n%8) + (n%64)/8].
[[nodiscard]] Permute humming_scale_order(const HummingMatrix& m);
[[nodiscard]] Output humming_scale_output(const LayoutInput& input, const HummingMatrix& m);

// Both weights, both scales, and the biases where there are any.
using HummingOutput = Output (*)(const LayoutInput& input, const HummingMatrix& m);
[[nodiscard]] std::vector<Output> humming_outputs(const LayoutInput& input, HummingOutput weight,
                                                  HummingOutput scale);

// The same with second scales behind them, for 8-bit activations: weights and scales are rounded
// first (humming_requantize.hpp), and `words`, if given, maps the weights' words at the end.
struct HummingRoundedWeights {
  Permute (*tiles)(int64_t n, int64_t k);
  int64_t tile_columns;
  HummingRounding rounding;
  const Recoding* words = nullptr;
};
[[nodiscard]] std::vector<Output> humming_rounded_outputs(const LayoutInput& input,
                                                          const HummingRoundedWeights& weights);
// Layout::check_data of such a layout.
[[nodiscard]] std::string check_humming_granule(const LayoutInput& input, Slot slot,
                                                ConstBytes granule, HummingRounding rounding);

}  // namespace mxfp4
