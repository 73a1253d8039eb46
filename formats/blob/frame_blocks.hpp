// Cuts what is to be a zstd frame into blocks: RLE blocks for runs of one value, raw blocks for the
// rest.
//
// The content of large raw blocks lies as in the decoded bytes, modulo 32: processors of AMD need a
// third more time, and for some places three times as much, to copy from the page cache to memory
// that lies otherwise (EPYC: 6.2 and 2.7 instead of 8.5 GB/s; Xeons do not care). Between them lie
// empty raw blocks, three bytes each, which every decoder passes over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Bytes that RFC 8878 gives: the most of a block, and the bytes of its header; and the bytes of the
// header and the checksum of this program's frames.
namespace zstd_frame {
inline constexpr int64_t kMaxBlockBytes = 128 << 10;
inline constexpr int64_t kBlockHeaderBytes = 3;
inline constexpr int64_t kHeaderBytes = 9;
inline constexpr int64_t kChecksumBytes = 4;
}  // namespace zstd_frame

// What the places of large raw blocks are equal to, modulo this, in the frame and in the
// decoded bytes.
inline constexpr int64_t kBlockAlignment = 32;

// Consecutive bytes of one value.
struct ByteRun {
  int64_t begin = 0;
  int64_t bytes = 0;
  friend bool operator==(const ByteRun&, const ByteRun&) = default;
};

// Shorter runs are stored as they are: a reader takes longer for many small blocks than for the
// bytes that they save.
inline constexpr int64_t kLeastRun = 1024;

// A block of a frame, as the decoded bytes [begin, begin + bytes).
struct FrameBlock {
  int64_t begin = 0;
  int64_t bytes = 0;
  bool repeated = false;  // one value: an RLE block
  int64_t fillers = 0;    // empty raw blocks before it
  friend bool operator==(const FrameBlock&, const FrameBlock&) = default;
};

// The runs in `in` of kLeastRun bytes or more, ascending. Looks at one cache line in sixteen, if
// there are none.
[[nodiscard]] std::vector<ByteRun> find_runs(ConstBytes in);

// Cuts a frame of `bytes` decoded bytes, which has these runs of one value, into blocks. Its
// encoded bytes and its decoded ones are equal modulo 32, so that the next frame's content lies as
// said above.
[[nodiscard]] std::vector<FrameBlock> cut_into_blocks(int64_t bytes, std::span<const ByteRun> runs);

// Encoded bytes of the frame of these blocks, its header and checksum included.
[[nodiscard]] int64_t raw_frame_bytes(std::span<const FrameBlock> blocks);

}  // namespace mxfp4
