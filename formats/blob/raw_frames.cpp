#include "formats/blob/raw_frames.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using zstd_frame::kBlockHeaderBytes;
using zstd_frame::kChecksumBytes;
using zstd_frame::kHeaderBytes;
using zstd_frame::kMaxBlockBytes;

// Blocks that are raw, empty, and not the last.
constexpr std::array<std::byte, kBlockAlignment * kBlockHeaderBytes> kFillers{};
// The magic number, then flags: content size of 4 bytes, single segment, checksum.
constexpr std::array kFrameBegin = {std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F},
                                    std::byte{0xFD}, std::byte{0xA4}};
enum BlockType : uint32_t { kRaw = 0, kRle = 1 };

// Bytes that are hashed at a time: few enough to be still in the cache when they are copied.
constexpr size_t kSummedAtOnce = size_t{128} << 10;
// Parts of a frame that are read before their content is hashed: two headers and two blocks.
constexpr size_t kPartsAtOnce = 4;

uint32_t load_number(ConstBytes bytes, size_t size) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data(), size);
  return value;
}

// Sums a frame's content piece by piece, before or after the bytes are moved: XXH64 if `check` asks
// for it, and `other` if it is not null.
class ContentSum {
 public:
  ContentSum(ConstBytes content, FrameCheck check, ChecksumPart* other)
      : content_(content), other_(other) {
    if (check == FrameCheck::kSizes) return;
    state_.reset(XXH64_createState());
    if (state_ == nullptr) throw std::bad_alloc();
    XXH64_reset(state_.get(), 0);
  }

  // Sums at least the bytes [0, end).
  void ahead(size_t end) {
    while (summed_ < end) add(std::min(kSummedAtOnce, content_.size() - summed_));
  }
  // Sums the bytes [0, end), which are in place, unless those not summed yet are few.
  void behind(size_t end) {
    if (end - summed_ >= kSummedAtOnce) add(end - summed_);
  }
  // Sums the rest. Returns the low half of XXH64; 0 if it was not asked for.
  uint32_t finish() {
    ahead(content_.size());
    return state_ == nullptr ? 0 : static_cast<uint32_t>(XXH64_digest(state_.get()));
  }

 private:
  void add(size_t bytes) {
    const ConstBytes piece = content_.subspan(summed_, bytes);
    if (state_ != nullptr) XXH64_update(state_.get(), piece.data(), piece.size());
    if (other_ != nullptr) other_->update(piece);
    summed_ += bytes;
  }

  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  std::unique_ptr<XXH64_state_t, Free> state_;
  ConstBytes content_;
  ChecksumPart* other_;
  size_t summed_ = 0;
};

size_t block_header(const FrameBlock& block, std::span<const FrameBlock> blocks) {
  const size_t last = &block == &blocks.back() ? 1 : 0;
  const size_t type = block.repeated ? kRle : kRaw;
  return static_cast<size_t>(block.bytes) << 3 | type << 1 | last;
}

// Where the bytes of a frame go that is read without a copy: the content of its blocks straight to
// their places, the headers between them and the checksum to `between`. `parts` lists both in turn.
struct RawFrameParts {
  explicit RawFrameParts(MutableBytes content);

  // Once the parts are filled: whether the frame is cut as one without runs.
  [[nodiscard]] bool has_raw_form() const {
    return std::ranges::equal(expected, std::span(between).first(expected.size()));
  }
  [[nodiscard]] uint32_t stored_sum() const {
    return load_number(std::span(between).subspan(expected.size()), kChecksumBytes);
  }

  std::vector<std::byte> expected;  // the headers that `between` must hold
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
  std::vector<size_t> ends;  // in `expected`, of what lies before each content
  for (const FrameBlock& block : blocks) {
    expected.resize(expected.size() + static_cast<size_t>(block.fillers * kBlockHeaderBytes));
    append_number(block_header(block, blocks), kBlockHeaderBytes);
    ends.push_back(expected.size());
  }
  between.resize(expected.size() + kChecksumBytes);
  size_t begin = 0;
  for (size_t i = 0; i < blocks.size(); begin = ends[i++]) {
    parts.push_back(MutableBytes(between).subspan(begin, ends[i] - begin));
    parts.push_back(content.subspan(static_cast<size_t>(blocks[i].begin),
                                    static_cast<size_t>(blocks[i].bytes)));
  }
  parts.push_back(MutableBytes(between).subspan(begin));
}

// Ends the sums. Throws InputFault if the frame's checksum is not the seek table's, or if `check`
// asks for the content's and it differs.
void check_sum(ContentSum& content, uint32_t stored, const FrameInfo& info, FrameCheck check) {
  const uint32_t sum = content.finish();
  if (stored == info.checksum && (check == FrameCheck::kSizes || sum == stored)) return;
  throw InputFault(Fault::kChecksum, "a zstd frame's checksum does not match the seek table");
}

[[noreturn]] void damaged() { throw InputFault(Fault::kChecksum, "a zstd frame is damaged"); }

// Gives the encoded bytes of a frame in order. They are in memory, or are read: large blocks
// straight to their places, small ones through a window so small that it stays in the caches.
class Window {
 public:
  explicit Window(ConstBytes encoded) : have_(encoded) {}
  Window(int64_t encoded, MutableBytes memory, const FrameRead& read)
      : have_(memory.first(0)), memory_(memory), read_(&read), end_(encoded) {}

  // The next `bytes` bytes, valid until the next call. Throws Error::input if the frame ends
  // before.
  ConstBytes take(size_t bytes) {
    if (have_.size() < bytes && offset_ < end_) refill();
    if (have_.size() < bytes) damaged();
    const ConstBytes taken = have_.first(bytes);
    have_ = have_.subspan(bytes);
    return taken;
  }

  // Moves the next bytes to `out`: copies those that the window has, and reads the rest to its
  // place.
  void move(MutableBytes out) {
    const size_t here = std::min(have_.size(), out.size());
    std::ranges::copy(have_.first(here), out.begin());
    have_ = have_.subspan(here);
    const MutableBytes rest = out.subspan(here);
    if (rest.empty()) return;
    if (rest.size() > static_cast<size_t>(end_ - offset_)) damaged();
    // The same call reads the headers that follow, up to the next large block.
    const size_t behind = static_cast<size_t>(end_ - offset_) - rest.size();
    have_ = memory_.first(std::min(rest.size() < kLargeRest ? memory_.size() : kAhead, behind));
    read({rest, memory_.first(have_.size())});
  }

  [[nodiscard]] bool at_end() const { return offset_ == end_ && have_.empty(); }

 private:
  void refill() {
    // The first bytes say whether zstd has to decode the frame. If so, more were read for nothing.
    const size_t room = offset_ == 0 ? std::min(kFirstBytes, memory_.size()) : memory_.size();
    std::ranges::copy(have_, memory_.begin());
    const auto more = std::min(room - have_.size(), static_cast<size_t>(end_ - offset_));
    read({memory_.subspan(have_.size(), more), {}});
    have_ = memory_.first(have_.size() + more);
  }

  void read(std::array<MutableBytes, 2> parts) {
    (*read_)(offset_, parts);
    offset_ += static_cast<int64_t>(parts[0].size() + parts[1].size());
  }

  static constexpr size_t kFirstBytes = 4096;
  static constexpr size_t kLargeRest = size_t{8} << 10;
  static constexpr size_t kAhead = 128;  // fillers and two headers
  ConstBytes have_;
  MutableBytes memory_;
  const FrameRead* read_ = nullptr;
  int64_t offset_ = 0;  // of what is read next
  int64_t end_ = 0;
};

// Fills `out` with the frame's content. False, with `out` and `sum` undefined, if a block or the
// header is not as write_raw_frame writes them.
bool unpack_blocks(Window& window, const FrameInfo& info, MutableBytes out, FrameCheck check,
                   ChecksumPart* sum) {
  if (info.encoded < kHeaderBytes) return false;
  const ConstBytes header = window.take(kHeaderBytes);
  if (!std::ranges::equal(header.first(kFrameBegin.size()), kFrameBegin)) return false;
  if (load_number(header.subspan(kFrameBegin.size()), 4) != out.size()) {
    throw Error::input("a zstd frame disagrees with its entry in the seek table");
  }
  ContentSum content(out, check, sum);
  size_t at = 0;
  for (bool last = false; !last;) {
    const uint32_t block = load_number(window.take(kBlockHeaderBytes), kBlockHeaderBytes);
    last = (block & 1U) != 0;
    const uint32_t type = block >> 1 & 3U;
    const size_t size = block >> 3;
    if (type != kRaw && type != kRle) return false;
    if (size > kMaxBlockBytes || size > out.size() - at) damaged();
    const MutableBytes place = out.subspan(at, size);
    if (type == kRle) {
      std::ranges::fill(place, window.take(1).front());
    } else {
      window.move(place);
    }
    at += size;
    content.behind(at);
  }
  const uint32_t stored = load_number(window.take(kChecksumBytes), kChecksumBytes);
  if (at != out.size() || !window.at_end()) damaged();
  check_sum(content, stored, info, check);
  return true;
}

}  // namespace

FrameInfo write_raw_frame(ConstBytes in, std::span<const FrameBlock> blocks, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit) {
  FrameInfo info{raw_frame_bytes(blocks), static_cast<int64_t>(in.size()), 0};
  const auto emit_number = [&](size_t value, size_t bytes) {
    emit({reinterpret_cast<const std::byte*>(&value), bytes});
  };
  ContentSum content(in, FrameCheck::kChecksums, sum);
  emit(kFrameBegin);
  emit_number(in.size(), 4);
  for (const FrameBlock& block : blocks) {
    const auto size = static_cast<size_t>(block.bytes);
    const ConstBytes bytes = in.subspan(static_cast<size_t>(block.begin), size);
    content.ahead(static_cast<size_t>(block.begin) + size);
    emit(ConstBytes(kFillers).first(static_cast<size_t>(block.fillers * kBlockHeaderBytes)));
    emit_number(block_header(block, blocks), kBlockHeaderBytes);
    if (block.repeated && std::memcmp(bytes.data(), bytes.data() + 1, size - 1) != 0) {
      throw Error::internal("bytes of a run differ");
    }
    emit(block.repeated ? bytes.first(1) : bytes);
  }
  info.checksum = content.finish();
  emit_number(info.checksum, kChecksumBytes);
  return info;
}

bool decode_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out, FrameCheck check,
                      ChecksumPart* sum) {
  Window window(encoded);
  return unpack_blocks(window, info, out, check, sum);
}

bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check, ChecksumPart* sum,
                    MutableBytes window, const FrameRead& read) {
  RawFrameParts frame(out);
  if (frame.bytes != info.encoded) {
    Window blocks(info.encoded, window, read);
    return unpack_blocks(blocks, info, out, check, sum);
  }
  ContentSum content(out, check, sum);
  // If bytes are summed, few are read at a time, so that they are still in the caches.
  const bool summed = check == FrameCheck::kChecksums || sum != nullptr;
  const size_t at_once = summed ? kPartsAtOnce : frame.parts.size();
  int64_t offset = 0;
  size_t filled = 0;
  for (size_t at = 0; at < frame.parts.size(); at += at_once) {
    const auto parts =
        std::span(frame.parts).subspan(at, std::min(at_once, frame.parts.size() - at));
    read(offset, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      offset += static_cast<int64_t>(parts[i].size());
      if (i % 2 == 1) filled += parts[i].size();
    }
    if (summed) content.behind(filled);
  }
  if (!frame.has_raw_form()) return false;
  check_sum(content, frame.stored_sum(), info, check);
  return true;
}

}  // namespace mxfp4
