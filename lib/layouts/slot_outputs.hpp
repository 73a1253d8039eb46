// Outputs that many layouts make in the same way, and checks of preconditions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Throws Error::unsupported "layout <id>: <what> must be a multiple of <m>, found <n>".
void require_multiple(std::string_view layout_id, std::string_view what, int64_t value, int64_t m);

// An output that passes its slot through `program` expert by expert, named as the slot.
[[nodiscard]] Output slot_output(const LoadedSpec& loaded, Slot slot, TensorSpec spec,
                                 Program program);
// The slot unchanged.
[[nodiscard]] Output identity_output(const LoadedSpec& loaded, Slot slot);
// The outputs of a layout that moves only block scales: `scale_output` for both of them, weights
// unchanged, biases unchanged where there are any.
[[nodiscard]] std::vector<Output> scales_only(const LoadedSpec& loaded,
                                              Output (*scale_output)(const LoadedSpec&, Slot));
// A bias widened to F32 in its own order; an F32 bias passes unchanged.
[[nodiscard]] Output f32_bias_output(const LoadedSpec& loaded, Slot slot);

}  // namespace mxfp4
