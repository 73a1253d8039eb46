// The element maps that layouts share.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

// BF16 -> F32 by widening: the word is the BF16 bits << 16, NaN payloads kept. Exact inverse.
extern const Recoding kWidenBf16ToF32;
// e8m0 -> F32: the word is the code << 23 (vLLM a2c8fc6657 quantization/utils/fp8_utils.py,
// _upcast_e8m0_to_fp32). All 256 codes are mapped by the shift, so it inverts exactly.
extern const Recoding kE8m0ToF32;

}  // namespace mxfp4
