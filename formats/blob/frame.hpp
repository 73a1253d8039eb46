// A zstd frame of a blob's file: its sizes and checksum, and how a decoded frame is checked.
#pragma once

#include <cstdint>

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

}  // namespace mxfp4
