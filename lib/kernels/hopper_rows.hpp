// The interleave of flashinfer's mixed-input GEMM for capability 9.0 (0.6.18 and later) in one
// pass: byte order and the mix of code bits in each 32-bit word. The steps of
// lib/layouts/flashinfer_cutlass.cpp are the definition; these equal them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels {

// `rows` rows of `columns` bytes (two codes each) to as many of the same size. `rows` is a multiple
// of 16, `columns` of 64. `in` and `out` do not overlap; no alignment needed. `streaming`: whole
// lines of `out` go past the caches, and finish_streaming() (copy.hpp) must follow before another
// thread may look.
void hopper_rows_pack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                      std::byte* out) noexcept;
// The inverse.
void hopper_rows_unpack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                        std::byte* out) noexcept;

}  // namespace mxfp4::kernels
