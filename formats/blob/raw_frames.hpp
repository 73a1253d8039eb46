// zstd frames that need no entropy coder (RFC 8878, 3.1.1): RLE blocks for runs of one value, raw
// blocks for the rest. Decoding them is a copy. For codes the plan says where runs lie, since their
// padding is known before a byte is made; in scales and biases, which are few bytes, runs are
// searched.
//
// The content of large raw blocks lies as in the decoded bytes, modulo 32: processors of AMD need a
// third more time, and for some places three times as much, to copy from the page cache to memory that
// lies otherwise (EPYC: 6.2 and 2.7 instead of 8.5 GB/s; Xeons do not care). Between them lie empty raw
// blocks, three bytes each, which every decoder passes over.
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

// A block of a frame, as the decoded bytes [begin, begin + bytes).
struct FrameBlock {
  int64_t begin = 0;
  int64_t bytes = 0;
  bool repeated = false;  // one value: an RLE block
  int64_t fillers = 0;    // empty raw blocks before it
  friend bool operator==(const FrameBlock&, const FrameBlock&) = default;
};

// The runs of one value in `in`, ascending, that are worth a block of their own: kLeastPadding bytes
// or more.
[[nodiscard]] std::vector<PaddingRun> find_runs(ConstBytes in);

// Cuts a frame of `bytes` decoded bytes, which has these runs of one value, into blocks. Its encoded
// bytes and its decoded ones are equal modulo 32, so that the next frame's content lies as said above.
[[nodiscard]] std::vector<FrameBlock> cut_into_blocks(int64_t bytes,
                                                      std::span<const PaddingRun> runs);

// Encoded bytes of the frame of these blocks, its header and checksum included.
[[nodiscard]] int64_t raw_frame_bytes(std::span<const FrameBlock> blocks);

// Encodes `in` as one frame, and calls `emit` with the frame's bytes in order: parts of `in`
// itself, and short parts that are valid only during the call. Updates `sum`, if not null, with
// each piece of `in` shortly before emitting it. Throws Error::internal if a repeated block has two
// values.
FrameInfo write_raw_frame(ConstBytes in, std::span<const FrameBlock> blocks, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit);

// Decodes a frame of raw and RLE blocks to exactly `out`. With kChecksums, the content must have
// the frame's checksum and the seek table's. Updates `sum`, if not null, with `out`. False if a
// block or the header is not as write_raw_frame writes them: then `out` and `sum` are undefined, and
// zstd has to decode the frame. Throws Error::input.
[[nodiscard]] bool decode_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                                    FrameCheck check = FrameCheck::kChecksums,
                                    ChecksumPart* sum = nullptr);

// Fills `parts`, one after another, with a frame's encoded bytes from `offset` on.
using FrameRead = std::function<void(int64_t offset, std::span<const MutableBytes> parts)>;

// Bytes of memory that read_raw_frame() needs beside the frame's content.
inline constexpr int64_t kFrameWindowBytes = 64 << 10;

// Reads a frame of raw and RLE blocks to `out`, checks it as decode_raw_frame() does, and updates
// `sum`, if not null, with `out`. A frame without RLE blocks is read straight to `out`; of any other,
// small blocks go through `window` (kFrameWindowBytes), which stays in the caches.
// False if a block or the header is not as write_raw_frame writes them: then `out` and `sum` are
// undefined, and decode_frame() has to decode the frame. Throws Error::input, and what `read`
// throws.
[[nodiscard]] bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check,
                                  ChecksumPart* sum, MutableBytes window, const FrameRead& read);

}  // namespace mxfp4
