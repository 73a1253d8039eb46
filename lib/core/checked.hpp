// Arithmetic on sizes that come from files: overflow is an input error, never a wrapped number.
#pragma once

#include <cstdint>

namespace mxfp4 {

// Product and sum of non-negative sizes. Throw Error::input on overflow or a negative operand.
[[nodiscard]] int64_t checked_mul(int64_t a, int64_t b);
[[nodiscard]] int64_t checked_add(int64_t a, int64_t b);

// a rounded up to a multiple of b; a >= 0, b > 0. Throws Error::input on overflow.
[[nodiscard]] int64_t round_up(int64_t a, int64_t b);

// Quotient rounded up; a >= 0, b > 0.
[[nodiscard]] constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

}  // namespace mxfp4
