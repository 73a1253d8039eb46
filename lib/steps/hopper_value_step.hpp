// The Hopper value swizzle as one step; what it does is stated in lib/layouts/triton_hopper.cpp.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

// `rows` x `columns` bytes in, as many out; rows a multiple of 16, columns of 32.
[[nodiscard]] Custom hopper_value_step(int64_t rows, int64_t columns);

}  // namespace mxfp4
