#include "formats/checksum/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using kernels::Xxh3Lanes;

// Constants of the specification.
constexpr uint64_t kPrime32A = 0x9E3779B1;
constexpr uint64_t kPrime32B = 0x85EBCA77;
constexpr uint64_t kPrime32C = 0xC2B2AE3D;
constexpr uint64_t kPrime64A = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime64B = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime64C = 0x165667B19E3779F9;
constexpr uint64_t kPrime64D = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime64E = 0x27D4EB2F165667C5;
constexpr Xxh3Lanes kStart = {kPrime32C, kPrime64A, kPrime64B, kPrime64C,
                              kPrime64D, kPrime32B, kPrime64E, kPrime32A};
// XXH3 hashes inputs of up to this many bytes in other ways, which xxhash.h does.
constexpr int64_t kLongestShort = 240;
constexpr size_t kStripe = kernels::kXxh3StripeBytes;
constexpr size_t kLastStripeSecret = 121;
constexpr size_t kLowSecret = 11;
constexpr size_t kHighSecret = 117;

// Blocks summed by one call: enough to make the call worth it, few enough for their sums to stay in
// the cache.
constexpr size_t kBatch = 256;

uint64_t fold_product(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t merge(const Xxh3Lanes& lanes, size_t secret, uint64_t start) {
  uint64_t hash = start;
  for (size_t i = 0; i < lanes.size(); i += 2) {
    hash += fold_product(lanes[i] ^ kernels::xxh3_secret_word(secret + 8 * i),
                         lanes[i + 1] ^ kernels::xxh3_secret_word(secret + 8 * i + 8));
  }
  hash ^= hash >> 37;
  hash *= 0x165667919E3779F9;
  return hash ^ hash >> 32;
}

std::string to_hex(uint64_t high, uint64_t low) { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace

template <class Sink>
void ChecksumBlocks::feed(ConstBytes bytes, Sink&& sink) {
  std::array<uint64_t, kBatch * kLanes> sums;
  if (open_bytes_ > 0) {
    const size_t take = std::min(kBlock - open_bytes_, bytes.size());
    if (take > 0) std::memcpy(tail_.data() + kBlock + open_bytes_, bytes.data(), take);
    bytes = bytes.subspan(take);
    open_bytes_ += take;
    if (open_bytes_ < kBlock) return;
    kernels::xxh3_sum_blocks(tail_.data() + kBlock, 1, sums.data());
    sink(std::span<const uint64_t>(sums.data(), kLanes));
    std::memcpy(tail_.data(), tail_.data() + kBlock, kBlock);
  }
  const size_t blocks = bytes.size() / kBlock;
  for (size_t done = 0; done < blocks; done += kBatch) {
    const size_t count = std::min(kBatch, blocks - done);
    kernels::xxh3_sum_blocks(bytes.data() + done * kBlock, count, sums.data());
    sink(std::span<const uint64_t>(sums.data(), count * kLanes));
  }
  feed_summed(bytes);
}

void ChecksumBlocks::feed_summed(ConstBytes bytes) {
  open_bytes_ = bytes.size() % kBlock;
  const ConstBytes whole = bytes.first(bytes.size() - open_bytes_);
  if (!whole.empty()) std::memcpy(tail_.data(), whole.last(kBlock).data(), kBlock);
  if (open_bytes_ > 0) {
    std::memcpy(tail_.data() + kBlock, bytes.data() + whole.size(), open_bytes_);
  }
}

void ChecksumPart::begin(int64_t position) {
  position_ = position;
  const auto in_block = static_cast<size_t>(position % kPeriod);
  to_block_ = in_block == 0 ? 0 : ChecksumBlocks::kBlock - in_block;
  head_bytes_ = 0;
  own_sums_.clear();
  sums_ = {};
  blocks_.clear();
}

void ChecksumPart::update(ConstBytes bytes) {
  const size_t take = std::min(to_block_ - head_bytes_, bytes.size());
  if (take > 0) {
    std::memcpy(head_.data() + head_bytes_, bytes.data(), take);
    head_bytes_ += take;
    bytes = bytes.subspan(take);
  }
  if (bytes.empty()) return;
  blocks_.feed(bytes, [this](std::span<const uint64_t> sums) {
    own_sums_.insert(own_sums_.end(), sums.begin(), sums.end());
  });
  sums_ = own_sums_;
}

void ChecksumPart::assemble(int64_t position, ConstBytes bytes, std::span<const uint64_t> sums) {
  begin(position);
  head_bytes_ = std::min(to_block_, bytes.size());
  if (head_bytes_ > 0) std::memcpy(head_.data(), bytes.data(), head_bytes_);
  sums_ = sums;
  blocks_.feed_summed(bytes.subspan(head_bytes_));
}

Checksum::Checksum() : lanes_(kStart) {}

void Checksum::add_blocks(const uint64_t* sums, size_t blocks) {
  if (blocks == 0) return;
  if (has_last_) kernels::xxh3_end_block(last_.data(), lanes_);
  kernels::xxh3_end_blocks(sums, blocks - 1, lanes_);
  std::copy_n(sums + (blocks - 1) * last_.size(), last_.size(), last_.begin());
  has_last_ = true;
}

void Checksum::update(ConstBytes bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  blocks_.feed(bytes, [this](std::span<const uint64_t> sums) {
    add_blocks(sums.data(), sums.size() / last_.size());
  });
}

void Checksum::append(const ChecksumPart& part) {
  if ((part.position_ - size_) % ChecksumPart::kPeriod != 0) {
    throw Error::internal("a part of a checksum came out of order");
  }
  update({part.head_.data(), part.head_bytes_});
  if (!part.sums_.empty()) {
    const size_t blocks = part.sums_.size() / last_.size();
    add_blocks(part.sums_.data(), blocks);
    blocks_.continue_from(part.blocks_);
    size_ += static_cast<int64_t>(blocks * ChecksumBlocks::kBlock);
  }
  update(part.blocks_.open());
}

std::string Checksum::hex() const {
  const ConstBytes open = blocks_.open();
  if (size_ <= kLongestShort) {
    const XXH128_hash_t hash = XXH3_128bits(open.data(), open.size());
    return to_hex(hash.high64, hash.low64);
  }
  // The last block, whole or not, ends with a stripe of its own.
  Xxh3Lanes lanes = lanes_;
  ConstBytes block = open;
  if (open.empty()) {
    block = {blocks_.tail(), ChecksumBlocks::kBlock};
  } else if (has_last_) {
    kernels::xxh3_end_block(last_.data(), lanes);
  }
  for (size_t n = 0; n < (block.size() - 1) / kStripe; ++n) {
    kernels::xxh3_add_stripe(block.data() + n * kStripe, 8 * n, lanes);
  }
  kernels::xxh3_add_stripe(block.data() + block.size() - kStripe, kLastStripeSecret, lanes);
  const auto size = static_cast<uint64_t>(size_);
  return to_hex(merge(lanes, kHighSecret, ~(size * kPrime64B)),
                merge(lanes, kLowSecret, size * kPrime64A));
}

std::string checksum_of(std::string_view text) {
  Checksum sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.hex();
}

}  // namespace mxfp4
