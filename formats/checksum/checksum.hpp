// XXH3-128, the checksum of manifests (xxHash 0.8, seed 0, canonical big-endian hex).
//
// Several threads can sum parts of a stream; only the folding of a few words per kilobyte is
// serial. Where a tensor starts at a whole kilobyte of its file, one part serves the tensor's
// checksum and the file's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/tensor.hpp"
#include "lib/kernels/xxh3_blocks.hpp"

namespace mxfp4 {

// Bytes that readers sum at a time: few enough to be still in the cache when the next sum, or the
// copy, reads them.
inline constexpr size_t kHashPiece = size_t{256} << 10;

// Cuts a stream into the blocks of XXH3 and sums them; keeps the bytes of an unfinished block.
class ChecksumBlocks {
 public:
  // Calls sink(sums of some whole blocks) for the blocks that `bytes` completes.
  template <class Sink>
  void feed(ConstBytes bytes, Sink&& sink);
  // Like feed(), from a block's start on, for bytes whose whole blocks are summed elsewhere.
  void feed_summed(ConstBytes bytes);
  // Takes over the last whole block of `last`, whose blocks followed this stream's. This stream
  // must have no open bytes. The open bytes of `last` are not taken over.
  void continue_from(const ChecksumBlocks& last) { tail_ = last.tail_; }
  void clear() { open_bytes_ = 0; }

  // The bytes after the last whole block.
  [[nodiscard]] ConstBytes open() const { return {tail_.data() + kBlock, open_bytes_}; }
  // The last whole block, if there was one, and behind it open().
  [[nodiscard]] const std::byte* tail() const { return tail_.data(); }

  static constexpr size_t kBlock = kernels::kXxh3BlockBytes;
  static constexpr size_t kLanes = kernels::kXxh3Lanes;

 private:
  std::array<std::byte, 2 * kBlock> tail_;
  size_t open_bytes_ = 0;
};

// What some consecutive bytes of a stream add to its checksum. Made in any thread; reusable.
class ChecksumPart {
 public:
  // Two streams can share a part whose positions in them differ by a multiple of this.
  static constexpr int64_t kPeriod = ChecksumBlocks::kBlock;

  // Starts again: the next bytes are those from `position` of a stream on.
  void begin(int64_t position);
  void update(ConstBytes bytes);
  // begin() and update() in one, where another processor sums the whole blocks: `sums` has to be
  // what xxh3_sum_blocks gives for the blocks from first_block(position) on, when this is appended.
  void assemble(int64_t position, ConstBytes bytes, std::span<const uint64_t> sums);
  // Where the first whole block begins, at `position` of a stream or behind it.
  [[nodiscard]] static int64_t first_block(int64_t position) {
    return (position + kPeriod - 1) / kPeriod * kPeriod;
  }

 private:
  friend class Checksum;
  int64_t position_ = 0;
  size_t to_block_ = 0;                                 // bytes before the first block's start
  std::array<std::byte, ChecksumBlocks::kBlock> head_;  // these bytes
  size_t head_bytes_ = 0;
  std::vector<uint64_t> own_sums_;
  std::span<const uint64_t> sums_;  // of the blocks behind them: the own ones, or others
  ChecksumBlocks blocks_;
};

// A running checksum. Usage:  Checksum sum; sum.update(bytes); sum.hex();
class Checksum {
 public:
  Checksum();

  void update(ConstBytes bytes);
  // Adds the bytes of a part. Throws Error::internal unless its position is size() modulo kPeriod.
  void append(const ChecksumPart& part);
  [[nodiscard]] int64_t size() const { return size_; }
  // 32 lower-case hex digits of everything seen so far.
  [[nodiscard]] std::string hex() const;

 private:
  void add_blocks(const uint64_t* sums, size_t blocks);

  int64_t size_ = 0;
  kernels::Xxh3Lanes lanes_;
  kernels::Xxh3Lanes last_{};  // sums of the last whole block: folded when more bytes come
  bool has_last_ = false;
  ChecksumBlocks blocks_;
};

// The checksum of a text.
[[nodiscard]] std::string checksum_of(std::string_view text);

}  // namespace mxfp4
