// The Hopper value swizzle as one step; what it does is stated in lib/layouts/triton_hopper.cpp.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

// The mix of code bits in one packed word of four bytes, which follows the permutation of bytes.
extern const Recoding kHopperMix;

// `rows` x `columns` bytes in, as many out; rows a multiple of 16, columns of 32.
[[nodiscard]] Custom hopper_value_step(int64_t rows, int64_t columns);

}  // namespace mxfp4
