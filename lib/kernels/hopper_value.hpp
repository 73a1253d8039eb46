// The Hopper value swizzle of triton_kernels in one pass: byte order and the mix of code bits in
// each 32-bit word. The steps of lib/layouts/triton_hopper.cpp are the definition; these equal
// them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels {

// From `rows` rows of `columns` bytes (two codes each) to rows / 4 rows of 4 * columns bytes.
// `rows` is a multiple of 16, `columns` of 32. `in` and `out` do not overlap; no alignment needed.
// `streaming`: whole lines of `out` go past the caches, and finish_streaming() (copy.hpp) must
// follow before another thread may look.
void hopper_value_pack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                       std::byte* out) noexcept;
// The inverse, with the sizes of the unpacked side.
void hopper_value_unpack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                         std::byte* out) noexcept;

}  // namespace mxfp4::kernels
