// The part of XXH3 that reads every byte, cut so that any thread can do any block. XXH3 (xxHash
// 0.8, doc/xxhash_spec.md) takes long inputs in blocks of 1024 bytes: what a block adds to the
// eight accumulators does not depend on what they hold. So blocks are summed apart, in any order,
// and the sums, a sixteenth of the bytes, are folded in order; two streams that contain the same
// blocks share the sums. Default secret, seed 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels {

inline constexpr size_t kXxh3BlockBytes = 1024;
inline constexpr size_t kXxh3StripeBytes = 64;
inline constexpr size_t kXxh3Lanes = 8;
inline constexpr uint32_t kXxh3Prime = 0x9E3779B1;  // mixes a finished block
using Xxh3Lanes = std::array<uint64_t, kXxh3Lanes>;

// Bytes [offset, offset + 8) of the default secret of 192 bytes as a little-endian word.
[[nodiscard]] uint64_t xxh3_secret_word(size_t offset) noexcept;

// sums[8 * b + i]: what block b of `in` adds to accumulator i. `in` has blocks * 1024 bytes, `sums`
// blocks * 8 words; no alignment is needed. xxh3_add_stripe on each stripe is the definition.
void xxh3_sum_blocks(const std::byte* in, size_t blocks, uint64_t* sums) noexcept;

// Adds the 64 bytes at `in` to `lanes`, with the secret from `secret_offset` on.
void xxh3_add_stripe(const std::byte* in, size_t secret_offset, Xxh3Lanes& lanes) noexcept;

// Goes from one block to the next: adds the sums of the block that ends, then mixes.
void xxh3_end_block(const uint64_t* sums, Xxh3Lanes& lanes) noexcept;

// xxh3_end_block, which is the definition, for each of `blocks` blocks, whose sums lie one after
// another. Each needs the lanes of the one before: this is what threads cannot share.
void xxh3_end_blocks(const uint64_t* sums, size_t blocks, Xxh3Lanes& lanes) noexcept;

}  // namespace mxfp4::kernels
