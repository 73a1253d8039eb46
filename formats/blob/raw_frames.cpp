#include "formats/blob/raw_frames.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "formats/os/input_fault.hpp"

namespace mxfp4 {
namespace {

// Bytes that RFC 8878 gives: the most of a block, and the bytes of its header; and the bytes of the
// checksum of this program's frames.
constexpr int64_t kMaxBlockBytes = 128 << 10;
constexpr int64_t kBlockHeaderBytes = 3;
constexpr int64_t kChecksumBytes = 4;
// The magic number, then flags: content size of 4 bytes, single segment, checksum.
constexpr std::array kFrameBegin = {std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F},
                                    std::byte{0xFD}, std::byte{0xA4}};

// What the places of large blocks are equal to, modulo this, in the frame and in the content.
constexpr int64_t kAlignment = 32;
constexpr int64_t kLeastAligned = 32 << 10;

// Parts of a frame that are read before their content is summed: two headers and two blocks, few
// enough to be still in the cache.
constexpr size_t kPartsAtOnce = 4;

// A frame but its content and checksum.
struct RawForm {
  explicit RawForm(int64_t decoded);

  [[nodiscard]] int64_t encoded() const { return std::ssize(headers) + decoded + kChecksumBytes; }

  struct Block {
    int64_t bytes;  // of content
    size_t header;  // where its header ends, in `headers`
  };
  int64_t decoded;
  std::vector<Block> blocks;
  std::vector<std::byte> headers;  // what lies before the blocks' contents, one behind another
};

RawForm::RawForm(int64_t size) : decoded(size), headers(kFrameBegin.size() + 4) {
  std::ranges::copy(kFrameBegin, headers.begin());
  std::memcpy(headers.data() + kFrameBegin.size(), &size, 4);
  int64_t begin = 0;
  // Adds a block behind the fewest empty ones that make `shift` bytes more than `begin` a multiple
  // of kAlignment.
  const auto add = [&](int64_t bytes, int64_t behind = 0) {
    constexpr int64_t kInverse = 11;
    static_assert(kInverse * kBlockHeaderBytes % kAlignment == 1);
    const int64_t shift = std::ssize(headers) + kBlockHeaderBytes + behind;
    const int64_t fillers = (kAlignment - shift * kInverse % kAlignment) % kAlignment;
    headers.resize(headers.size() + static_cast<size_t>((fillers + 1) * kBlockHeaderBytes));
    const int64_t header = bytes << 3 | (begin + bytes == size ? 1 : 0);
    std::memcpy(headers.data() + headers.size() - kBlockHeaderBytes, &header, kBlockHeaderBytes);
    blocks.push_back({bytes, headers.size()});
    begin += bytes;
  };
  while (size - begin > kMaxBlockBytes) add(kMaxBlockBytes);
  // The empty blocks that end the frame at its place are not its last ones: zstd would not compare
  // the content's size, and a reader that has all bytes would not come to the checksum.
  const int64_t rest = size - begin;
  if (rest >= kLeastAligned) add(rest - kAlignment);
  add(size - begin, kChecksumBytes);
}

// Sums a frame's content piece by piece: XXH64 if `check` asks for it, and `other` if not null.
class ContentSum {
 public:
  ContentSum(FrameCheck check, ChecksumPart* other) : other_(other) {
    if (check == FrameCheck::kSizes) return;
    state_.reset(XXH64_createState());
    if (state_ == nullptr) throw std::bad_alloc();
    XXH64_reset(state_.get(), 0);
  }

  void add(ConstBytes piece) {
    if (state_ != nullptr) XXH64_update(state_.get(), piece.data(), piece.size());
    if (other_ != nullptr) other_->update(piece);
  }
  // The low half of XXH64; 0 if it was not asked for.
  [[nodiscard]] uint32_t low_half() const {
    return state_ == nullptr ? 0 : static_cast<uint32_t>(XXH64_digest(state_.get()));
  }

 private:
  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  std::unique_ptr<XXH64_state_t, Free> state_;
  ChecksumPart* other_;
};

}  // namespace

int64_t raw_frame_bytes(int64_t decoded) { return RawForm(decoded).encoded(); }

FrameInfo write_raw_frame(ConstBytes in, ChecksumPart* sum,
                          const std::function<void(ConstBytes)>& emit) {
  const RawForm form(std::ssize(in));
  ContentSum content(FrameCheck::kChecksums, sum);
  size_t written = 0;  // of the headers
  for (const RawForm::Block& block : form.blocks) {
    emit(ConstBytes(form.headers).subspan(written, block.header - written));
    written = block.header;
    const ConstBytes bytes = in.first(static_cast<size_t>(block.bytes));
    content.add(bytes);
    emit(bytes);
    in = in.subspan(bytes.size());
  }
  const FrameInfo info{form.encoded(), form.decoded, content.low_half()};
  emit(std::as_bytes(std::span(&info.checksum, 1)));
  return info;
}

bool read_raw_frame(const FrameInfo& info, MutableBytes out, FrameCheck check, ChecksumPart* sum,
                    const FrameRead& read) {
  const RawForm form(info.decoded);
  if (form.encoded() != info.encoded) return false;
  // Contents straight to their places; headers and, behind them, the checksum to `between`.
  std::vector<std::byte> between(form.headers.size() + kChecksumBytes);
  std::vector<MutableBytes> parts;
  size_t begin = 0;
  for (MutableBytes left = out; const RawForm::Block& block : form.blocks) {
    parts.push_back(std::span(between).subspan(begin, block.header - begin));
    parts.push_back(left.first(static_cast<size_t>(block.bytes)));
    left = left.subspan(parts.back().size());
    begin = block.header;
  }
  parts.push_back(std::span(between).subspan(begin));
  ContentSum content(check, sum);
  const bool summed = check == FrameCheck::kChecksums || sum != nullptr;
  const size_t at_once = summed ? kPartsAtOnce : parts.size();
  int64_t offset = 0;
  for (size_t at = 0; at < parts.size(); at += at_once) {
    const auto some = std::span(parts).subspan(at, std::min(at_once, parts.size() - at));
    read(offset, some);
    for (size_t i = 0; i < some.size(); ++i) {
      offset += std::ssize(some[i]);
      if (i % 2 == 1) content.add(some[i]);
    }
  }
  if (!std::ranges::equal(form.headers, std::span(between).first(form.headers.size()))) {
    return false;
  }
  uint32_t stored = 0;
  std::memcpy(&stored, between.data() + form.headers.size(), kChecksumBytes);
  if (stored != info.checksum ||
      (check == FrameCheck::kChecksums && content.low_half() != stored)) {
    throw InputFault(Fault::kChecksum, "a zstd frame's checksum does not match the seek table");
  }
  return true;
}

bool copy_raw_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out, FrameCheck check,
                    ChecksumPart* sum) {
  if (std::ssize(encoded) != info.encoded) return false;
  return read_raw_frame(info, out, check, sum,
                        [&](int64_t offset, std::span<const MutableBytes> parts) {
                          ConstBytes from = encoded.subspan(static_cast<size_t>(offset));
                          for (const MutableBytes part : parts) {
                            std::ranges::copy(from.first(part.size()), part.begin());
                            from = from.subspan(part.size());
                          }
                        });
}

}  // namespace mxfp4
