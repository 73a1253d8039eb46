// The method classes that choose their experts themselves (compressed-tensors, AutoRound), and rows
// of their choices that several releases share. Sources:
// compressed_tensors_moe_w4a4_mxfp4.py, quantization/inc/schemes/inc_mxfp4_moe.py.
#pragma once

#include <string_view>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

inline constexpr std::string_view kCompressedTensorsMethod = "CompressedTensorsW4A4Mxfp4MoEMethod";
inline constexpr std::string_view kAutoRoundMethod = "INCMxfp4MoEMethod";

[[nodiscard]] bool chooses_itself(const CallerRow& row);

// The oracle is asked after all.
[[nodiscard]] DirectRow oracle_row(Condition when);
// Marlin's repack is compiled for CUDA only, so that loading stops elsewhere.
[[nodiscard]] DirectRow no_marlin_repack();
// On XPU the tensors stay as they are loaded.
[[nodiscard]] DirectRow xpu_as_loaded();

}  // namespace mxfp4
