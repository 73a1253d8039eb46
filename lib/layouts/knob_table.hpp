// What each knob of knobs.hpp may be and decides, in words.
#pragma once

#include <array>
#include <string_view>

#include "lib/layouts/knob_variables.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {

struct Knob {
  std::string_view name;
  std::string_view values;   // what it may be; the first is the default
  std::string_view decides;  // in words, with the backends whose layouts ask for it
  // Environment variable of the serving process with the same meaning; empty: none.
  std::string_view variable;
};

// In the order of kKnobNames.
inline constexpr std::array<Knob, kKnobNames.size()> kKnobs = {{
    {kKnobNames[0], "bfloat16|float16",
     "the type of the model's activations and biases: MARLIN, BATCHED_MARLIN, HUMMING", ""},
    {kKnobNames[1], "none|fp8|int8", "the type of activations in the kernel: MARLIN",
     kMarlinVariable},
    {kKnobNames[2],
     "none|float8e4m3|float8e4m3-group32|float8e4m3-group64|float8e4m3-group128|int8|float4e2m1",
     "the type of activations in the kernel, where the checkpoint does not say it: HUMMING",
     kHummingVariable},
    {kKnobNames[3], "VERSION",
     "the order of weights with 16-bit activations from capability 10.0 on: HUMMING", ""},
    {kKnobNames[4], "mxfp4|int4",
     "whether the method class requantizes SiTU's experts: AITER_MXFP4_BF16 on gfx942", ""},
}};

}  // namespace mxfp4
