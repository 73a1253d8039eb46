// The weight orders of Hopper's kernels, one step each. lib/layouts/triton_hopper.cpp states the
// value swizzle, lib/layouts/flashinfer_cutlass.cpp the interleave of rows.
#pragma once

#include "lib/steps/step.hpp"

namespace mxfp4 {

// The mix of code bits in one packed word of four bytes, which follows the permutation of bytes.
extern const Recoding kHopperMix;

// The permutations of bytes that the mix follows, of each order.
[[nodiscard]] Permute hopper_value_bytes(int64_t rows, int64_t columns);
[[nodiscard]] Permute hopper_rows_bytes(int64_t rows, int64_t columns);

// `rows` x `columns` bytes in, as many out; rows a multiple of 16, columns of 32.
[[nodiscard]] Custom hopper_value_step(int64_t rows, int64_t columns);
// The same; columns a multiple of 64.
[[nodiscard]] Custom hopper_rows_step(int64_t rows, int64_t columns);

}  // namespace mxfp4
