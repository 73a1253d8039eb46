// Conditions on knobs and architectures that layout rows of several revisions share. `holds` throws
// Error::usage for a knob value that the engine does not know.
#pragma once

#include "lib/core/deployment.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

[[nodiscard]] bool marlin_int8_activations(const Target& target);
[[nodiscard]] bool marlin_fp8_activations(const Target& target);
// marlin_utils.py, get_marlin_input_dtype; an arch that was not told passes, the bytes are the
// same.
[[nodiscard]] bool marlin_fp8_on_other_arch(const Target& target);
[[nodiscard]] bool humming_8bit_activations(const Target& target);
// Throws Error::usage when the arch is not that of a CUDA device: the layout depends on it.
[[nodiscard]] bool humming_wgmma(const Target& target);
[[nodiscard]] bool arch_is_not_x86(const Target& target);

inline constexpr TargetCondition kMarlinInt8{"marlin_input_dtype int8", marlin_int8_activations};
inline constexpr TargetCondition kMarlinFp8{"marlin_input_dtype fp8", marlin_fp8_activations};
inline constexpr TargetCondition kMarlinFp8OtherArch{
    "marlin_input_dtype fp8, arch neither sm89 nor sm12x", marlin_fp8_on_other_arch};
inline constexpr TargetCondition kHumming8Bit{"humming_input_dtype float8e4m3 or int8",
                                              humming_8bit_activations};
inline constexpr TargetCondition kHummingWgmma{"CUDA capability 9.x", humming_wgmma};
inline constexpr TargetCondition kArchNotX86{"arch other than x86_64", arch_is_not_x86};

}  // namespace mxfp4
