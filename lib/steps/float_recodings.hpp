// Rounding element maps, for backends that hold biases in another 16-bit type than the checkpoint.
// They are not bijections: the inverse gives the nearest value of the source type.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

extern const Recoding kBf16ToF16;
extern const Recoding kF32ToBf16;
extern const Recoding kF32ToF16;

}  // namespace mxfp4
