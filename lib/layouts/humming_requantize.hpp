// HUMMING with 8-bit activations: block scales are clamped to a few steps above one exponent, the
// base, which becomes a second scale, and codes are rounded to match (humming-kernels
// include/humming/kernel/process_mxfp4.cuh; a6455de and 0.1.4 to 0.1.19 alike). Each function
// returns the combination in front of an output's program, for one expert. `pad` is the scale
// matrix's padding, which takes part in the range.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/core/dtype.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

inline constexpr std::byte kHummingScalePadding{127};
// Codes are shifted down by at most this many binary places.
inline constexpr int kHummingLargestShift = 127;

struct HummingRounding {
  std::string_view second_scale;  // its tensor, behind "w13_" or "w2_"
  int span;                       // scale bytes above the base
  int halvings;                   // how often the second scale is halved
  int lift = 0;                   // added to every scale byte
  bool by_row = false;            // each row has a base of its own, not each expert
  bool repeats_largest = false;   // new columns of scales repeat the row's largest byte, not 127
  DType row_type = DType::kBF16;  // of second scales by row: the params dtype, kBF16 or kF16
};
// The rounding of humming-kernels 0.1.0a1: "float8e4m3" or "int8". Throws Error::usage for others.
[[nodiscard]] HummingRounding humming_rounding(std::string_view input_dtype);
// The rounding of humming-kernels 0.1.4 to 0.1.10.
inline constexpr HummingRounding kHummingFp8GlobalRounding{
    .second_scale = "global_scale", .span = 11, .halvings = 1, .lift = 1};
// The roundings of humming-kernels 0.1.12 to 0.1.19.
inline constexpr HummingRounding kHummingFp8Rounding{.second_scale = "weight_scale_2",
                                                     .span = 11,
                                                     .halvings = 1,
                                                     .lift = 1,
                                                     .repeats_largest = true};
inline constexpr HummingRounding kHummingInt8Rounding{.second_scale = "weight_scale_2",
                                                      .span = 3,
                                                      .halvings = 1,
                                                      .by_row = true,
                                                      .repeats_largest = true};

// Codes [n, k/2] -> codes of the same shape. The inverse passes them on.
[[nodiscard]] Combination requantize_weights(Slot weight, Slot scale, const PadMatrix& pad,
                                             HummingRounding rounding);
// Scales -> padded scales, lift..span+lift. The inverse crops, and adds the base that the output
// `second_scale_name` implies.
[[nodiscard]] Combination requantize_scales(Slot scale, const PadMatrix& pad,
                                            HummingRounding rounding,
                                            std::string second_scale_name);
// Scales -> one F32, 2^(base - 127) halved `halvings` times; base 255 gives infinity. By row: an
// element of row_type for each padded row, 0 for a new row. requantize_scales() expects the
// elements in mma_bias_order.
[[nodiscard]] Combination second_scale(Slot scale, const PadMatrix& pad, HummingRounding rounding);

// Throws Error::unsupported for scales that lie so far apart that the reference's factor wraps
// around to garbage, and for a second scale that row_type does not hold.
void check_humming_scales(ConstBytes scales, const PadMatrix& pad, HummingRounding rounding);

}  // namespace mxfp4
