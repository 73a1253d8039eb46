#include "formats/blob/raw_frames.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxBlockBytes = 128 << 10;
constexpr int64_t kBlockHeaderBytes = 3;
constexpr int64_t kHeaderBytes = 9;
constexpr int64_t kChecksumBytes = 4;
// Magic number, then: 4-byte content size, single segment, checksum.
constexpr std::array kFrameBegin = {std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F},
                                    std::byte{0xFD}, std::byte{0xA4}};
enum BlockType : uint32_t { kRaw = 0, kRle = 1 };

// Bytes that are hashed at a time: they stay in the cache until they are copied.
constexpr size_t kHashPiece = size_t{128} << 10;
// Parts of a frame that are read before their content is hashed: two blocks with their headers.
constexpr size_t kPartsAtOnce = 4;

uint32_t load_number(ConstBytes bytes, size_t size) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

// XXH64 of a frame's content, summed by pieces before the bytes are moved or after.
class ContentSum {
 public:
  ContentSum(ConstBytes content, ChecksumPart* other) : content_(content), other_(other) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH64_reset(state_.get(), 0);
  }

  // At least the first `end` bytes are summed when it returns.
  void ahead(size_t end) {
    while (summed_ < end) add(std::min(kHashPiece, content_.size() - summed_));
  }
  // Sums the bytes [0, end) that are in place, unless they are few.
  void behind(size_t end) {
    if (end - summed_ >= kHashPiece) add(end - summed_);
  }
  [[nodiscard]] uint32_t finish() {
    ahead(content_.size());
    return static_cast<uint32_t>(XXH64_digest(state_.get()));
  }

 private:
  void add(size_t bytes) {
    const ConstBytes piece = content_.subspan(summed_, bytes);
    XXH64_update(state_.get(), piece.data(), piece.size());
    if (other_ != nullptr) other_->update(piece);
    summed_ += bytes;
  }

  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  std::unique_ptr<XXH64_state_t, Free> state_{XXH64_createState()};
  ConstBytes content_;
  ChecksumPart* other_;
  size_t summed_ = 0;
};

void append_blocks(int64_t begin, int64_t end, bool repeated, std::vector<FrameBlock>& blocks) {
  while (begin < end) {
    int64_t bytes = std::min(end - begin, kMaxBlockBytes);
    // zstd up to 1.4.3 refuses frames that begin with an RLE block: one byte goes before it.
    const bool first = repeated && blocks.empty();
    if (first) bytes = 1;
    blocks.push_back({begin, bytes, repeated && !first});
    begin += bytes;
  }
}

size_t block_header(const FrameBlock& block, std::span<const FrameBlock> blocks) {
  const size_t last = &block == &blocks.back() ? 1 : 0;
  const size_t type = block.repeated ? kRle : kRaw;
  return static_cast<size_t>(block.bytes) << 3 | type << 1 | last;
}

// Where a frame's bytes go that is read without a detour: content to its place, what lies between it
// elsewhere. Parts take turns: what lies between, content, ..., the checksum.
struct RawFrameParts {
  explicit RawFrameParts(MutableBytes content);

  // Once the parts are filled: whether the frame consists of raw blocks as large as they can be.
  [[nodiscard]] bool has_raw_form() const {
    return std::ranges::equal(expected, std::span(between).first(expected.size()));
  }
  [[nodiscard]] uint32_t stored_sum() const {
    return load_number(std::span(between).subspan(expected.size()), kChecksumBytes);
  }

  std::vector<std::byte> expected;  // what lies between, but for the checksum
  std::vector<std::byte> between;
  std::vector<MutableBytes> parts;
  int64_t bytes = 0;  // encoded
};

RawFrameParts::RawFrameParts(MutableBytes content) {
  const auto size = static_cast<int64_t>(content.size());
  const std::vector<FrameBlock> blocks = cut_into_blocks(size, {});
  bytes = raw_frame_bytes(blocks);
  const auto append_number = [this](size_t value, size_t count) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    expected.insert(expected.end(), from, from + count);
  };
  expected.assign(kFrameBegin.begin(), kFrameBegin.end());
  append_number(content.size(), 4);
  for (const FrameBlock& block : blocks)
    append_number(block_header(block, blocks), kBlockHeaderBytes);
  between.resize(expected.size() + kChecksumBytes);
  MutableBytes rest = between;
  size_t header = kHeaderBytes + kBlockHeaderBytes;
  for (const FrameBlock& block : blocks) {
    parts.push_back(rest.first(header));
    rest = rest.subspan(header);
    header = kBlockHeaderBytes;
    parts.push_back(
        content.subspan(static_cast<size_t>(block.begin), static_cast<size_t>(block.bytes)));
  }
  parts.push_back(rest);
}

void check_sum(ContentSum& content, uint32_t stored, const FrameInfo& info) {
  const uint32_t sum = content.finish();
  if (sum == stored && sum == info.checksum) return;
  throw Error::input("a zstd frame's checksum does not match the seek table");
}

[[noreturn]] void damaged() { throw Error::input("a zstd frame is damaged"); }

}  // namespace

std::vector<FrameBlock> cut_into_blocks(int64_t bytes, std::span<const PaddingRun> padding) {
  std::vector<FrameBlock> blocks;
  int64_t at = 0;
  for (const PaddingRun& run : padding) {
    append_blocks(at, run.begin, false, blocks);
    at = run.begin + run.bytes;
    append_blocks(run.begin, at, true, blocks);
  }
  append_blocks(at, bytes, false, blocks);
  return blocks;
}

int64_t raw_frame_bytes(std::span<const FrameBlock> blocks) {
  int64_t bytes = kHeaderBytes + kChecksumBytes;
  for (const FrameBlock& block : blocks) {
    bytes += kBlockHeaderBytes + (block.repeated ? 1 : block.bytes);
  }
  return bytes;
}

FrameInfo write_raw_frame(ConstBytes in, std::span<const FrameBlock> blocks, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit) {
  FrameInfo info{raw_frame_bytes(blocks), static_cast<int64_t>(in.size()), 0};
  const auto emit_number = [&](size_t value, size_t bytes) {
    emit({reinterpret_cast<const std::byte*>(&value), bytes});
  };
  ContentSum content(in, sum);
  emit(kFrameBegin);
  emit_number(in.size(), 4);
  for (const FrameBlock& block : blocks) {
    const auto size = static_cast<size_t>(block.bytes);
    const ConstBytes bytes = in.subspan(static_cast<size_t>(block.begin), size);
    content.ahead(static_cast<size_t>(block.begin) + size);
    emit_number(block_header(block, blocks), kBlockHeaderBytes);
    if (block.repeated && std::memcmp(bytes.data(), bytes.data() + 1, size - 1) != 0) {
      throw Error::internal("bytes that were planned as padding are not");
    }
    emit(block.repeated ? bytes.first(1) : bytes);
  }
  info.checksum = content.finish();
  emit_number(info.checksum, kChecksumBytes);
  return info;
}

bool decode_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                      FrameCheck check) {
  if (encoded.size() < kHeaderBytes ||
      !std::ranges::equal(encoded.first(kFrameBegin.size()), kFrameBegin)) {
    return false;
  }
  if (load_number(encoded.subspan(kFrameBegin.size()), 4) != out.size()) {
    throw Error::input("a zstd frame disagrees with its entry in the seek table");
  }
  ConstBytes rest = encoded.subspan(kHeaderBytes);
  ContentSum content(out, nullptr);
  size_t at = 0;
  for (bool last = false; !last;) {
    if (rest.size() < kBlockHeaderBytes) damaged();
    const uint32_t header = load_number(rest, kBlockHeaderBytes);
    rest = rest.subspan(kBlockHeaderBytes);
    last = (header & 1U) != 0;
    const uint32_t type = header >> 1 & 3U;
    const size_t size = header >> 3;
    if (type != kRaw && type != kRle) return false;
    const size_t stored = type == kRle ? 1 : size;
    if (size > kMaxBlockBytes || size > out.size() - at || stored > rest.size()) damaged();
    if (type == kRle) {
      std::memset(out.data() + at, std::to_integer<int>(rest.front()), size);
    } else if (size > 0) {
      std::memcpy(out.data() + at, rest.data(), size);
    }
    rest = rest.subspan(stored);
    at += size;
    if (check == FrameCheck::kChecksums) content.behind(at);
  }
  if (at != out.size() || rest.size() != kChecksumBytes) damaged();
  if (check == FrameCheck::kSizes) return true;
  check_sum(content, load_number(rest, kChecksumBytes), info);
  return true;
}

bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check, ChecksumPart* sum,
                    const FrameRead& read) {
  RawFrameParts frame(out);
  if (frame.bytes != info.encoded) return false;
  const bool checked = check == FrameCheck::kChecksums;
  ContentSum content(out, nullptr);
  // What is summed is read shortly before, so that it is still in the caches.
  const size_t at_once = checked || sum != nullptr ? kPartsAtOnce : frame.parts.size();
  int64_t offset = 0;
  size_t filled = 0;
  for (size_t at = 0; at < frame.parts.size(); at += at_once) {
    const auto parts =
        std::span(frame.parts).subspan(at, std::min(at_once, frame.parts.size() - at));
    read(offset, parts);
    const size_t before = filled;
    for (size_t i = 0; i < parts.size(); ++i) {
      offset += static_cast<int64_t>(parts[i].size());
      if (i % 2 == 1) filled += parts[i].size();
    }
    if (checked) content.ahead(filled);
    if (sum != nullptr) sum->update(out.subspan(before, filled - before));
  }
  if (!frame.has_raw_form()) return false;
  if (checked) check_sum(content, frame.stored_sum(), info);
  return true;
}

}  // namespace mxfp4
