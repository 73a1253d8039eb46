// zstd frames that need no decoder: raw blocks (RFC 8878, 3.1.1), cut by the content's size alone, so
// a reader knows where each byte lies before it has seen one, and reads it to its place.
//
// The content of large blocks lies as in the decoded bytes, modulo 32: processors of AMD need a third
// more time, and for some places three times as much, to copy from the page cache to memory that lies
// otherwise (EPYC: 6.2 and 2.7 instead of 8.5 GB/s; Xeons do not care). Between blocks lie empty ones,
// three bytes each, which every decoder passes over.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "formats/checksum/checksum.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// One frame of the file. Sizes fit 32 bits, as the table's fields do.
struct FrameInfo {
  int64_t encoded = 0;
  int64_t decoded = 0;
  uint32_t checksum = 0;  // low half of XXH64 (seed 0) over the decoded bytes
};

// The largest decoded size of a frame that is written or accepted.
inline constexpr int64_t kMaxFrameBytes = int64_t{64} << 20;

// kSizes does not compare the checksums of raw frames: for callers that compare the checksum of a
// whole tensor. Those of compressed frames are always compared.
enum class FrameCheck : uint8_t { kChecksums, kSizes };

// Encoded bytes of a raw frame of `decoded` bytes, its header and checksum included. Equal to
// `decoded` modulo 32, so that the next frame's content lies as said above.
[[nodiscard]] int64_t raw_frame_bytes(int64_t decoded);

// Encodes `in` as one frame, and calls `emit` with the frame's bytes in order: parts of `in`
// itself, and short parts that are valid only during the call. Updates `sum`, if not null, with
// each piece of `in` shortly before emitting it.
FrameInfo write_raw_frame(ConstBytes in, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit);

// Fills `parts`, one after another, with a frame's encoded bytes from `offset` on.
using FrameRead = std::function<void(int64_t offset, std::span<const MutableBytes> parts)>;

// Reads a raw frame straight to `out`, whose size is info.decoded. With kChecksums, the content must
// have the frame's checksum and the seek table's. Updates `sum`, if not null, with `out`. False if
// the frame is not as write_raw_frame writes it: then `out` and `sum` are undefined, and
// decode_frame() has to decode it. Throws Error::input, and what `read` throws.
[[nodiscard]] bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check,
                                  ChecksumPart* sum, const FrameRead& read);

// The same for a frame that is in memory.
[[nodiscard]] bool copy_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                                  FrameCheck check, ChecksumPart* sum);

}  // namespace mxfp4
