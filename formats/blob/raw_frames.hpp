// zstd frames that need no entropy coder (RFC 8878, 3.1.1): RLE blocks for runs of one value, raw
// blocks for the rest, as frame_blocks.hpp cuts them. Decoding them is a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "formats/blob/frame.hpp"
#include "formats/blob/frame_blocks.hpp"
#include "formats/checksum/checksum.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Encodes `in` as one frame, and calls `emit` with the frame's bytes in order: parts of `in`
// itself, and short parts that are valid only during the call. Updates `sum`, if not null, with
// each piece of `in` shortly before emitting it. Throws Error::internal if a repeated block has two
// values.
FrameInfo write_raw_frame(ConstBytes in, std::span<const FrameBlock> blocks, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit);

// Decodes a frame of raw and RLE blocks to exactly `out`. With kChecksums, the content must have
// the frame's checksum and the seek table's. Updates `sum`, if not null, with `out`. False if a
// block or the header is not as write_raw_frame writes them: then `out` and `sum` are undefined,
// and zstd has to decode the frame. Throws Error::input.
[[nodiscard]] bool decode_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                                    FrameCheck check = FrameCheck::kChecksums,
                                    ChecksumPart* sum = nullptr);

// Fills `parts`, one after another, with a frame's encoded bytes from `offset` on.
using FrameRead = std::function<void(int64_t offset, std::span<const MutableBytes> parts)>;

// Bytes of memory that read_raw_frame() needs beside the frame's content.
inline constexpr int64_t kFrameWindowBytes = 64 << 10;

// Reads a frame of raw and RLE blocks to `out`, checks it as decode_raw_frame() does, and updates
// `sum`, if not null, with `out`. A frame without RLE blocks is read straight to `out`; of any
// other, small blocks go through `window` (kFrameWindowBytes), which stays in the caches. False if
// a block or the header is not as write_raw_frame writes them: then `out` and `sum` are undefined,
// and decode_frame() has to decode the frame. Throws Error::input, and what `read` throws.
[[nodiscard]] bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check,
                                  ChecksumPart* sum, MutableBytes window, const FrameRead& read);

}  // namespace mxfp4
