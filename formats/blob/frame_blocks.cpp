#include "formats/blob/frame_blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace mxfp4 {
namespace {

using zstd_frame::kBlockHeaderBytes;

// A block of at least this size has its content where the decoded bytes have it,
// modulo kBlockAlignment.
constexpr int64_t kLeastAligned = 32 << 10;
constexpr int64_t kSmallEnd = kBlockAlignment;  // of a frame that would end with such a block

// Bytes of a probe for runs, and from one probe to the next: a run of kLeastRun bytes holds a whole
// probe wherever it begins.
constexpr size_t kRunProbe = 16;
constexpr size_t kProbeStep = kLeastRun - kRunProbe;

// Whether the kRunProbe bytes are equal.
bool has_one_value(ConstBytes probe) {
  std::array<uint64_t, 2> halves;
  std::memcpy(halves.data(), probe.data(), sizeof halves);
  return halves[0] == halves[1] && halves[0] == std::rotl(halves[0], 8);
}

int64_t encoded_bytes(const FrameBlock& block) {
  return (block.fillers + 1) * kBlockHeaderBytes + (block.repeated ? 1 : block.bytes);
}

// Cuts a frame, run by run.
class BlockCutter {
 public:
  void cut(int64_t begin, int64_t end, bool repeated) {
    while (begin < end) {
      int64_t bytes = std::min(end - begin, zstd_frame::kMaxBlockBytes);
      // zstd up to 1.4.3 refuses frames that begin with an RLE block: one byte goes before it.
      const bool first = repeated && blocks_.empty();
      if (first) bytes = 1;
      FrameBlock block = {begin, bytes, repeated && !first};
      if (is_aligned(block)) block.fillers = fillers_for(encoded_ + kBlockHeaderBytes - begin);
      append(block);
      begin += bytes;
    }
  }
  // The blocks of a frame of `bytes` decoded bytes, all of which were cut.
  std::vector<FrameBlock> finish(int64_t bytes) {
    if (blocks_.empty()) return {};
    // The fillers that end the frame at its place are not its last blocks: zstd would not compare
    // the content's size, and a reader that has all bytes would not come to the checksum.
    FrameBlock& last = blocks_.back();
    if (is_aligned(last)) {
      last.bytes -= kSmallEnd;
      encoded_ -= kSmallEnd;
      append({last.begin + last.bytes, kSmallEnd});
    }
    blocks_.back().fillers = fillers_for(encoded_ + zstd_frame::kChecksumBytes - bytes);
    return std::move(blocks_);
  }

 private:
  static bool is_aligned(const FrameBlock& block) {
    return !block.repeated && block.bytes >= kLeastAligned;
  }
  // The fewest empty blocks that make `shift` a multiple of kBlockAlignment.
  static int64_t fillers_for(int64_t shift) {
    constexpr int64_t kInverse = 11;
    static_assert(kInverse * kBlockHeaderBytes % kBlockAlignment == 1);
    return ((-shift * kInverse) % kBlockAlignment + kBlockAlignment) % kBlockAlignment;
  }
  void append(const FrameBlock& block) {
    encoded_ += encoded_bytes(block);
    blocks_.push_back(block);
  }

  std::vector<FrameBlock> blocks_;
  int64_t encoded_ = zstd_frame::kHeaderBytes;
};

}  // namespace

std::vector<ByteRun> find_runs(ConstBytes in) {
  std::vector<ByteRun> runs;
  auto free = in.begin();  // behind the last run
  for (size_t at = 0; at + kRunProbe <= in.size();) {
    const ConstBytes probe = in.subspan(at, kRunProbe);
    if (!has_one_value(probe)) {
      at += kProbeStep;
      continue;
    }
    const auto here = in.begin() + static_cast<ptrdiff_t>(at);
    const auto differs = [value = probe.front()](std::byte b) { return b != value; };
    const auto begin =
        std::find_if(std::reverse_iterator(here), std::reverse_iterator(free), differs).base();
    const auto end = std::find_if(here, in.end(), differs);
    if (end - begin >= kLeastRun) runs.push_back({begin - in.begin(), end - begin});
    free = end;
    at = static_cast<size_t>(end - in.begin());
  }
  return runs;
}

std::vector<FrameBlock> cut_into_blocks(int64_t bytes, std::span<const ByteRun> runs) {
  BlockCutter cutter;
  int64_t at = 0;
  for (const ByteRun& run : runs) {
    cutter.cut(at, run.begin, false);
    at = run.begin + run.bytes;
    cutter.cut(run.begin, at, true);
  }
  cutter.cut(at, bytes, false);
  return cutter.finish(bytes);
}

int64_t raw_frame_bytes(std::span<const FrameBlock> blocks) {
  int64_t bytes = zstd_frame::kHeaderBytes + zstd_frame::kChecksumBytes;
  for (const FrameBlock& block : blocks) bytes += encoded_bytes(block);
  return bytes;
}

}  // namespace mxfp4
