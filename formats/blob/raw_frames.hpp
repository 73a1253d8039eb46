// zstd frames that need no entropy coder (RFC 8878, 3.1.1): RLE blocks for runs of one value, raw
// blocks for the rest. Decoding them is a copy. Where runs lie is planned for codes, whose padding is
// known before a byte is made, and looked for in scales and biases, which are few bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "lib/core/tensor.hpp"
#include "lib/plan/padding.hpp"

namespace mxfp4 {

// Part of a frame's decoded bytes: [begin, begin + bytes).
struct FrameBlock {
  int64_t begin = 0;
  int64_t bytes = 0;
  bool repeated = false;  // one value: an RLE block
  friend bool operator==(const FrameBlock&, const FrameBlock&) = default;
};

// The runs of one value in `in` that are worth a block of their own, ascending: kLeastPadding bytes
// or more.
[[nodiscard]] std::vector<PaddingRun> find_runs(ConstBytes in);

// The blocks of a frame of `bytes` bytes in which these runs lie.
[[nodiscard]] std::vector<FrameBlock> cut_into_blocks(int64_t bytes,
                                                      std::span<const PaddingRun> runs);

// Encoded bytes of the frame of these blocks, its header and checksum included.
[[nodiscard]] int64_t raw_frame_bytes(std::span<const FrameBlock> blocks);

// Calls `emit` with the frame of `in`, from its first byte to its last: parts of `in` itself, and
// few bytes that end with the call. `sum`, if there is one, is updated with `in`, a piece of it
// shortly before the piece is emitted. Throws Error::internal when a repeated block has two values.
FrameInfo write_raw_frame(ConstBytes in, std::span<const FrameBlock> blocks, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit);

// Decodes a frame of raw and RLE blocks to exactly `out`, and checks both checksums if it is told
// to. False when the frame has other blocks or another header than write_raw_frame's: `out` is
// undefined then, and zstd has to decode it. Throws Error::input.
[[nodiscard]] bool decode_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                                    FrameCheck check = FrameCheck::kChecksums);

// Fills `parts`, one after another, with a frame's encoded bytes from `offset` on.
using FrameRead = std::function<void(int64_t offset, std::span<const MutableBytes> parts)>;

// Bytes of memory that read_raw_frame() needs beside the frame's content.
inline constexpr int64_t kFrameWindowBytes = 64 << 10;

// Reads a frame of raw and RLE blocks to its place, `out`, checks both checksums if it is told to,
// and updates `sum`, if there is one, with `out`. A frame of raw blocks as large as they can be is
// read without a copy, the small blocks of another one by way of `window` (kFrameWindowBytes), which
// stays in the caches.
// False when the frame has other blocks or another header than write_raw_frame's: `out` and `sum` are
// undefined then, and decode_frame() has to see it. Throws Error::input, and what `read` throws.
[[nodiscard]] bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check,
                                  ChecksumPart* sum, MutableBytes window, const FrameRead& read);

}  // namespace mxfp4
