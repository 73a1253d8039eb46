// The weight interleave of FlashInfer's SM90 mixed-input kernels, eight bytes of two rows at a time
// in 64-bit words. The permutation is stated in lib/layouts/flashinfer_cutlass_sm90.cpp; in bytes:
//
// rows a = 16T + y and b = a + 8 (y = 0..7), byte column 32P + l (l = 0..31) with source bytes A, B
// give two bytes in row 16T + y + 8*((l/8)%2) at columns 32P + 16*(l/16) + 4*(l%4) + 2*((l%8)/4) +
// {0, 1}: (A & 15) | (B & 15) << 4 and (A >> 4) | (B & 240).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels {

// `row_tiles` * 16 rows of `column_tiles` * 32 bytes. `in` and `out` do not overlap; no alignment
// needed. For little-endian hosts.
void sm90_interleave(int64_t row_tiles, int64_t column_tiles, const std::byte* in,
                     std::byte* out) noexcept;
// The inverse.
void sm90_deinterleave(int64_t row_tiles, int64_t column_tiles, const std::byte* in,
                       std::byte* out) noexcept;

}  // namespace mxfp4::kernels
