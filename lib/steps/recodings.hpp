// The element maps that layouts share.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

// BF16 -> F32 by widening: the word is the BF16 bits << 16, NaN payloads kept. Exact inverse.
extern const Recoding kWidenBf16ToF32;
// e8m0 -> F32: the word is the code << 23 (vLLM a2c8fc6657 quantization/utils/fp8_utils.py,
// _upcast_e8m0_to_fp32). All 256 codes are mapped by the shift, so it inverts exactly.
extern const Recoding kE8m0ToF32;
// e8m0 -> the five exponent bits of an F16 number, in the upper bits of a byte: 8 * clamp(code -
// 112, 0, 30). Codes 112 to 142 invert exactly; others come back as the nearer of the two.
extern const Recoding kE8m0ToE5m0;
// 32-bit words of eight e2m1 codes in the order a0 b0 a1 b1 a2 b2 a3 b3: signs keep it, magnitudes
// come as a0 a1 a2 a3 b0 b1 b2 b3. A permutation of the word's bits.
extern const Recoding kMagnitudesApart;

}  // namespace mxfp4
