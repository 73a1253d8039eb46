#include "formats/blob/seekable_zstd.hpp"

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr uint32_t kFrameMagic = 0xFD2FB528U;
constexpr uint32_t kSkippableMagic = 0x184D2A5EU;
constexpr uint32_t kSeekableMagic = 0x8F92EAB1U;
constexpr uint8_t kChecksumFlag = 0x80;
constexpr int64_t kEntryBytes = 12;
constexpr int64_t kFooterBytes = 9;
constexpr int64_t kSkippableHeaderBytes = 8;
constexpr int64_t kMaxBlockBytes = 128 << 10;

// Shape of the sample: enough places to see padding that is spread over rows.
constexpr size_t kSamplePieces = 16;
constexpr size_t kSamplePieceBytes = 4096;

constexpr size_t kHashPiece = size_t{128} << 10;

void append_u32(std::vector<std::byte>& out, uint32_t value) {
  std::array<std::byte, 4> bytes;
  std::memcpy(bytes.data(), &value, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

uint32_t load_u32(ConstBytes bytes, int64_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Whether a frame that starts with its magic number ends with the low half of its content's XXH64.
bool has_checksum(ConstBytes frame) { return (frame[4] & std::byte{4}) != std::byte{0}; }

struct Decoder {
  Decoder() : zstd(ZSTD_createDCtx()) {
    if (zstd == nullptr) throw std::bad_alloc();
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { ZSTD_freeDCtx(zstd); }

  ZSTD_DCtx* zstd;
};

// The result of a call of zstd's that only fails by our own fault.
size_t checked(size_t result) {
  if (ZSTD_isError(result) != 0U) {
    throw Error::internal(fmt::format("zstd: {}", ZSTD_getErrorName(result)));
  }
  return result;
}

bool shrinks(size_t encoded, size_t decoded) { return encoded <= decoded - decoded / 50; }

// XXH64 of a frame and, on the way, the part of another checksum: each byte comes into the cache
// once.
uint32_t frame_checksum(XXH64_state_t* state, ConstBytes in, ChecksumPart* sum) {
  XXH64_reset(state, 0);
  while (!in.empty()) {
    const ConstBytes piece = in.first(std::min(in.size(), kHashPiece));
    XXH64_update(state, piece.data(), piece.size());
    if (sum != nullptr) sum->update(piece);
    in = in.subspan(piece.size());
  }
  return static_cast<uint32_t>(XXH64_digest(state));
}

}  // namespace

void EncodedFrames::clear() {
  frames_.clear();
  own_.clear();
  parts_.clear();
  bytes_ = 0;
}

void EncodedFrames::add_own(ConstBytes bytes) {
  own_.insert(own_.end(), bytes.begin(), bytes.end());
  bytes_ += static_cast<int64_t>(bytes.size());
  if (!parts_.empty() && parts_.back().raw == nullptr) {
    parts_.back().size += bytes.size();
  } else {
    parts_.push_back({nullptr, bytes.size()});
  }
}

void EncodedFrames::add_raw(ConstBytes bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  if (!bytes.empty()) parts_.push_back({bytes.data(), bytes.size()});
}

// A frame of raw blocks: header with content size and checksum flag, single segment.
void EncodedFrames::add_raw_frame(ConstBytes in, uint32_t checksum) {
  const auto add_number = [this](size_t value, size_t bytes) {
    add_own({reinterpret_cast<const std::byte*>(&value), bytes});
  };
  add_number(kFrameMagic, 4);
  add_number(0xA4, 1);  // 4-byte content size, single segment, checksum
  add_number(in.size(), 4);
  while (true) {
    const size_t size = std::min<size_t>(in.size(), kMaxBlockBytes);
    const bool last = size == in.size();
    add_number(size << 3 | (last ? 1U : 0U), 3);
    add_raw(in.first(size));
    in = in.subspan(size);
    if (last) break;
  }
  add_number(checksum, 4);
}

std::vector<ConstBytes> EncodedFrames::spans() const {
  std::vector<ConstBytes> spans;
  spans.reserve(parts_.size());
  const std::byte* own = own_.data();
  for (const Part& part : parts_) {
    spans.emplace_back(part.raw == nullptr ? own : part.raw, part.size);
    if (part.raw == nullptr) own += part.size;
  }
  return spans;
}

struct FrameEncoder::Context {
  explicit Context(int level) {
    if (hash == nullptr) throw std::bad_alloc();
    if (zstd == nullptr) throw Error::internal("zstd: no memory for a compression context");
    set(ZSTD_c_compressionLevel, level);
    set(ZSTD_c_checksumFlag, 1);
    set(ZSTD_c_contentSizeFlag, 1);
  }

  void set(ZSTD_cParameter parameter, int value) {
    checked(ZSTD_CCtx_setParameter(zstd.get(), parameter, value));
  }

  // Compresses to `buffer`; the encoded size.
  size_t compress(ConstBytes in) {
    const size_t bound = ZSTD_compressBound(in.size());
    if (buffer.size() < bound) buffer.resize(bound);
    return checked(ZSTD_compress2(zstd.get(), buffer.data(), buffer.size(), in.data(), in.size()));
  }

  // Whether a sample of `in` shrinks enough for the whole to be tried.
  bool worth_trying(ConstBytes in) {
    constexpr size_t kSampleBytes = kSamplePieces * kSamplePieceBytes;
    if (in.size() <= 2 * kSampleBytes) return true;
    sample.resize(kSampleBytes);
    const size_t step = (in.size() - kSamplePieceBytes) / (kSamplePieces - 1);
    for (size_t i = 0; i < kSamplePieces; ++i) {
      std::memcpy(sample.data() + i * kSamplePieceBytes, in.data() + i * step, kSamplePieceBytes);
    }
    return shrinks(compress(sample), kSampleBytes);
  }

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
  std::unique_ptr<XXH64_state_t, Free> hash{XXH64_createState()};
  std::vector<std::byte> buffer;
  std::vector<std::byte> sample;
};

FrameEncoder::FrameEncoder(int level) : context_(std::make_unique<Context>(level)) {}
FrameEncoder::FrameEncoder(FrameEncoder&&) noexcept = default;
FrameEncoder& FrameEncoder::operator=(FrameEncoder&&) noexcept = default;
FrameEncoder::~FrameEncoder() = default;

void FrameEncoder::encode(ConstBytes in, EncodedFrames& out, ChecksumPart* sum) {
  const uint32_t checksum = frame_checksum(context_->hash.get(), in, sum);
  const int64_t before = out.bytes();
  size_t size = in.size();
  if (context_->worth_trying(in)) size = context_->compress(in);
  if (shrinks(size, in.size())) {
    out.add_own({context_->buffer.data(), size});
  } else {
    out.add_raw_frame(in, checksum);
  }
  out.frames_.push_back({out.bytes() - before, static_cast<int64_t>(in.size()), checksum});
}

FrameInfo FrameEncoder::encode(ConstBytes in, std::vector<std::byte>& out) {
  EncodedFrames frames;
  encode(in, frames);
  for (ConstBytes span : frames.spans()) out.insert(out.end(), span.begin(), span.end());
  return frames.frames().front();
}

int64_t encoder_bytes(int level, int64_t frame_bytes) {
  FrameEncoder::Context context(level);
  (void)context.compress(std::vector<std::byte>(static_cast<size_t>(frame_bytes)));
  return static_cast<int64_t>(ZSTD_sizeof_CCtx(context.zstd.get()) + context.buffer.capacity());
}

std::vector<std::byte> make_seek_table(const std::vector<FrameInfo>& frames) {
  std::vector<std::byte> out;
  const auto count = static_cast<int64_t>(frames.size());
  append_u32(out, kSkippableMagic);
  append_u32(out, static_cast<uint32_t>(count * kEntryBytes + kFooterBytes));
  for (const FrameInfo& frame : frames) {
    append_u32(out, static_cast<uint32_t>(frame.encoded));
    append_u32(out, static_cast<uint32_t>(frame.decoded));
    append_u32(out, frame.checksum);
  }
  append_u32(out, static_cast<uint32_t>(count));
  out.push_back(std::byte{kChecksumFlag});
  append_u32(out, kSeekableMagic);
  return out;
}

std::vector<SeekEntry> read_seek_table(ConstBytes file) {
  const auto size = static_cast<int64_t>(file.size());
  if (size < kSkippableHeaderBytes + kFooterBytes || load_u32(file, size - 4) != kSeekableMagic) {
    throw Error::input("no seek table at the end of the zstd file");
  }
  const int64_t count = load_u32(file, size - kFooterBytes);
  const auto descriptor = std::to_integer<uint8_t>(file[static_cast<size_t>(size - 5)]);
  const int64_t content = count * kEntryBytes + kFooterBytes;
  const int64_t table = size - content - kSkippableHeaderBytes;
  if (descriptor != kChecksumFlag) {
    throw Error::input(
        fmt::format("seek table descriptor {:#04x}, expected {:#04x}", descriptor, kChecksumFlag));
  }
  if (table < 0 || load_u32(file, table) != kSkippableMagic ||
      load_u32(file, table + 4) != content) {
    throw Error::input(fmt::format("the seek table of {} frames does not fit the file", count));
  }
  std::vector<SeekEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  int64_t encoded = 0;
  int64_t decoded = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = table + kSkippableHeaderBytes + i * kEntryBytes;
    const FrameInfo frame{load_u32(file, at), load_u32(file, at + 4), load_u32(file, at + 8)};
    if (frame.decoded > kMaxFrameBytes) {
      throw Error::input(fmt::format("frame {} claims {} bytes, at most {} are accepted", i,
                                     frame.decoded, kMaxFrameBytes));
    }
    entries.push_back({frame, encoded, decoded});
    encoded += frame.encoded;
    decoded += frame.decoded;
  }
  if (encoded != table) {
    throw Error::input(
        fmt::format("the frames of the seek table take {} bytes, the file has {}", encoded, table));
  }
  return entries;
}

bool is_zstd(ConstBytes file) { return file.size() >= 4 && load_u32(file, 0) == kFrameMagic; }

void decode_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out) {
  const auto expected = static_cast<unsigned long long>(info.decoded);
  if (out.size() != expected ||
      ZSTD_getFrameContentSize(encoded.data(), encoded.size()) != expected ||
      ZSTD_findFrameCompressedSize(encoded.data(), encoded.size()) != encoded.size()) {
    throw Error::input("a zstd frame disagrees with its entry in the seek table");
  }
  thread_local const Decoder kDecoder;
  const size_t size =
      ZSTD_decompressDCtx(kDecoder.zstd, out.data(), out.size(), encoded.data(), encoded.size());
  if (ZSTD_isError(size) != 0U) {
    throw Error::input(fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  }
  // zstd has compared the content with the checksum at the frame's end.
  if (size != out.size() || !has_checksum(encoded) ||
      load_u32(encoded, static_cast<int64_t>(encoded.size()) - 4) != info.checksum) {
    throw Error::input("a zstd frame's checksum does not match the seek table");
  }
}

std::string zstd_library_version() { return ZSTD_versionString(); }

}  // namespace mxfp4
