// Variables of the serving process that count where a knob was not given.
#pragma once

#include <array>
#include <string_view>

namespace mxfp4 {

inline constexpr std::string_view kMarlinVariable = "VLLM_MARLIN_INPUT_DTYPE";
inline constexpr std::string_view kHummingVariable = "VLLM_HUMMING_INPUT_QUANT_CONFIG";
inline constexpr std::array kKnobVariables = {kMarlinVariable, kHummingVariable};

}  // namespace mxfp4
