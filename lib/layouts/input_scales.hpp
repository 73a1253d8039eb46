// Static activation scales, F32 [E] as loaded: the engine keeps one number for all experts.
// Source: vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py (AITER_MXFP4_FP8 branch) and
// quantization/utils/w8a8_utils.py, all_close_1d.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Throws Error::unsupported, in the reference's words, when none are loaded.
void require_input_scales(const LoadedSpec& loaded);

// F32 scalar (shape []) = maximum over all experts; NaN if any is NaN. The inverse gives every
// expert the maximum. `slot` is one of the input scales and is loaded. Throws Error::unsupported
// when there are no experts.
[[nodiscard]] Output input_scale_maximum(std::string_view layout_id, const LoadedSpec& loaded,
                                         Slot slot);

// The same for both projections, at the end of `outputs`.
void append_input_scale_maxima(std::string_view layout_id, const LoadedSpec& loaded,
                               std::vector<Output>& outputs);

// Layout::check_data for layouts with such maxima. For a slot of input scales, whose granule is the
// native-endian F32 of all experts, the reference's warning unless each x[i] is close to x[0]:
//   x[0] == x[i]  or  |x[0] - x[i]| finite and <= 1e-8f + |1e-5f * x[i]|,  each operation in F32
// Example: 1.0 and 1.0 + 83 ulp are close, 1.0 and 1.0 + 84 ulp are not.
[[nodiscard]] std::string check_input_scales(const LayoutInput& input, Slot slot,
                                             ConstBytes granule);

}  // namespace mxfp4
