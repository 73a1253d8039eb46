// HUMMING with 8-bit activations: block scales are clamped to a few steps above one exponent of the
// expert, which becomes its global scale, and codes are rounded to match (humming-kernels a6455de,
// include/humming/kernel/process_mxfp4.cuh). Each function returns the combination in front
// of an output's program, for one expert. `pad` is the scale matrix's padding, which takes part in the
// range.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/layouts/layout.hpp"

namespace mxfp4 {

inline constexpr std::byte kHummingScalePadding{127};
// Codes are shifted down by at most this many binary places.
inline constexpr int kHummingLargestShift = 127;

struct HummingActivation {
  int span;      // scale bytes above the base
  int halvings;  // of the global scale
};
// For "float8e4m3" and "int8"; throws Error::usage for others.
[[nodiscard]] HummingActivation humming_activation(std::string_view input_dtype);

struct HummingScaleRange {
  int smallest, largest;
};
// Over one expert's scale bytes and their padding; 127 to 127 when there is none at all.
[[nodiscard]] HummingScaleRange humming_scale_range(ConstBytes scales, const PadMatrix& pad);

// Codes [n, k/2] -> codes of the same shape. The inverse passes them on.
[[nodiscard]] Combination requantize_weights(Slot weight, Slot scale, const PadMatrix& pad,
                                             HummingActivation activation);
// Scales -> padded scales, 0..span. The inverse crops, and adds the base that the output
// `global_scale_name` implies.
[[nodiscard]] Combination requantize_scales(Slot scale, const PadMatrix& pad,
                                            HummingActivation activation,
                                            std::string global_scale_name);
// Scales -> one F32, 2^(base - 127) halved `halvings` times; base 255 gives infinity.
[[nodiscard]] Combination global_scale(Slot scale, const PadMatrix& pad,
                                       HummingActivation activation);

}  // namespace mxfp4
