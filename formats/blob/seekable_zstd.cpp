#include "formats/blob/seekable_zstd.hpp"

#include <fmt/format.h>
// ZSTD_c_literalCompressionMode is in every release since 1.4.5, but not in zstd's stable
// interface.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <array>
#include <cstring>
#include <new>

#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr uint32_t kFrameMagic = 0xFD2FB528U;
constexpr uint32_t kSkippableMagic = 0x184D2A5EU;
constexpr uint32_t kSeekableMagic = 0x8F92EAB1U;
constexpr uint8_t kChecksumFlag = 0x80;
constexpr int64_t kEntryBytes = 12;
constexpr int64_t kSkippableHeaderBytes = 8;

constexpr int kRunsAlone = 1;
constexpr int kFrequencies = 2;
// zstd's level for both. A negative level is the step of zstd's search: so large a step
// finds long runs only.
constexpr int kNoSearch = -1000;

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

// Whether a frame, which begins with its magic number, ends with a checksum of its content.
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

// The result of a call of zstd that fails only without memory, or if this program has a bug.
size_t checked(size_t result) {
  if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (ZSTD_isError(result) != 0U) {
    throw Error::internal(fmt::format("zstd: {}", ZSTD_getErrorName(result)));
  }
  return result;
}

Error table_does_not_fit(int64_t frames) {
  return Error::input(fmt::format("the seek table of {} frames does not fit the file", frames));
}

// Whether `in` has a run of one value of 1.5 KiB or more; of a shorter one, perhaps.
bool has_run(ConstBytes in) {
  constexpr size_t kProbe = 512;
  constexpr size_t kStep = 1024;
  for (size_t at = 0; at + kProbe <= in.size(); at += kStep) {
    const std::byte* from = in.data() + at;
    if (std::memcmp(from, from + 1, kProbe - 1) == 0) return true;
  }
  return false;
}

}  // namespace

struct FrameEncoder::Context {
  explicit Context(int level) {
    if (zstd == nullptr) throw std::bad_alloc();
    set(ZSTD_c_compressionLevel, level <= kFrequencies ? kNoSearch : level);
    if (level == kRunsAlone) set(ZSTD_c_literalCompressionMode, ZSTD_lcm_uncompressed);
    if (level == kFrequencies) set(ZSTD_c_literalCompressionMode, ZSTD_lcm_huffman);
    set(ZSTD_c_checksumFlag, 1);
    set(ZSTD_c_contentSizeFlag, 1);
  }

  void set(ZSTD_cParameter parameter, int value) {
    checked(ZSTD_CCtx_setParameter(zstd.get(), parameter, value));
  }

  // Compresses `in` to `buffer`, and returns the encoded size.
  size_t compress(ConstBytes in) {
    const size_t bound = ZSTD_compressBound(in.size());
    if (buffer.size() < bound) buffer.resize(bound);
    return checked(ZSTD_compress2(zstd.get(), buffer.data(), buffer.size(), in.data(), in.size()));
  }

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
  std::vector<std::byte> buffer;
};

FrameEncoder::FrameEncoder(int level) : wanted_(level) {}
FrameEncoder::~FrameEncoder() = default;

std::optional<FrameInfo> FrameEncoder::shorten(ConstBytes in, bool codes,
                                               std::vector<std::byte>& out) {
  const int level = codes ? kRunsAlone : wanted_;
  if (level == kRunsAlone && !has_run(in)) return std::nullopt;
  std::unique_ptr<Context>& context = level == kRunsAlone ? runs_ : level_;
  if (!context) context = std::make_unique<Context>(level);
  const size_t size = context->compress(in);
  if (size > in.size() - in.size() / 50) return std::nullopt;
  const ConstBytes frame = std::span(context->buffer).first(size);
  out.insert(out.end(), frame.begin(), frame.end());
  const auto encoded = static_cast<int64_t>(size);
  return FrameInfo{encoded, std::ssize(in), load_u32(frame, encoded - 4)};
}

FrameInfo FrameEncoder::encode(ConstBytes in, std::vector<std::byte>& out) {
  if (const auto shorter = shorten(in, /*codes=*/false, out)) return *shorter;
  return write_raw_frame(
      in, nullptr, [&out](ConstBytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
}

int64_t encoder_bytes(int level, int64_t frame_bytes) {
  const std::vector<std::byte> frame(static_cast<size_t>(frame_bytes));
  int64_t bytes = 0;
  for (const int used : {kRunsAlone, level}) {
    FrameEncoder::Context context(used);
    (void)context.compress(frame);
    bytes += static_cast<int64_t>(ZSTD_sizeof_CCtx(context.zstd.get()) + context.buffer.capacity());
    if (level == kRunsAlone) break;
  }
  return bytes;
}

std::vector<std::byte> make_seek_table(const std::vector<FrameInfo>& frames) {
  std::vector<std::byte> out;
  const auto count = static_cast<int64_t>(frames.size());
  append_u32(out, kSkippableMagic);
  append_u32(out, static_cast<uint32_t>(count * kEntryBytes + kSeekFooterBytes));
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

int64_t seek_table_bytes(ConstBytes end, int64_t file_bytes) {
  const auto size = static_cast<int64_t>(end.size());
  if (file_bytes < kSkippableHeaderBytes + kSeekFooterBytes || size < kSeekFooterBytes ||
      load_u32(end, size - 4) != kSeekableMagic) {
    throw Error::input("no seek table at the end of the zstd file");
  }
  const int64_t count = load_u32(end, size - kSeekFooterBytes);
  const auto descriptor = std::to_integer<uint8_t>(end[static_cast<size_t>(size - 5)]);
  if (descriptor != kChecksumFlag) {
    throw Error::input(
        fmt::format("seek table descriptor {:#04x}, expected {:#04x}", descriptor, kChecksumFlag));
  }
  const int64_t bytes = kSkippableHeaderBytes + count * kEntryBytes + kSeekFooterBytes;
  if (bytes > file_bytes) throw table_does_not_fit(count);
  return bytes;
}

std::vector<SeekEntry> read_seek_table(ConstBytes end, int64_t file_bytes) {
  const int64_t bytes = seek_table_bytes(end, file_bytes);
  const int64_t count = (bytes - kSkippableHeaderBytes - kSeekFooterBytes) / kEntryBytes;
  const int64_t table = static_cast<int64_t>(end.size()) - bytes;
  if (table < 0 || load_u32(end, table) != kSkippableMagic ||
      load_u32(end, table + 4) != bytes - kSkippableHeaderBytes) {
    throw table_does_not_fit(count);
  }
  std::vector<SeekEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  int64_t encoded = 0;
  int64_t decoded = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = table + kSkippableHeaderBytes + i * kEntryBytes;
    const FrameInfo frame{load_u32(end, at), load_u32(end, at + 4), load_u32(end, at + 8)};
    if (frame.encoded == 0 || frame.decoded == 0) {
      throw Error::input(fmt::format("frame {} of the seek table is empty", i));
    }
    if (frame.decoded > kMaxFrameBytes) {
      throw Error::input(fmt::format("frame {} claims {} bytes, at most {} are accepted", i,
                                     frame.decoded, kMaxFrameBytes));
    }
    entries.push_back({frame, encoded, decoded});
    encoded += frame.encoded;
    decoded += frame.decoded;
  }
  if (encoded != file_bytes - bytes) {
    throw Error::input(fmt::format("the frames of the seek table take {} bytes, the file has {}",
                                   encoded, file_bytes - bytes));
  }
  return entries;
}

bool is_zstd(ConstBytes file) { return file.size() >= 4 && load_u32(file, 0) == kFrameMagic; }

void decode_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out, FrameCheck check) {
  const auto expected = static_cast<unsigned long long>(info.decoded);
  if (out.size() == expected && copy_raw_frame(encoded, info, out, check, nullptr)) return;
  if (out.size() != expected ||
      ZSTD_getFrameContentSize(encoded.data(), encoded.size()) != expected ||
      ZSTD_findFrameCompressedSize(encoded.data(), encoded.size()) != encoded.size()) {
    throw Error::input("a zstd frame disagrees with its entry in the seek table");
  }
  thread_local const Decoder kDecoder;
  const size_t size =
      ZSTD_decompressDCtx(kDecoder.zstd, out.data(), out.size(), encoded.data(), encoded.size());
  if (ZSTD_isError(size) != 0U) {
    throw InputFault(Fault::kChecksum, fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  }
  // zstd has compared the content with the checksum at the frame's end.
  if (size != out.size() || !has_checksum(encoded) ||
      load_u32(encoded, static_cast<int64_t>(encoded.size()) - 4) != info.checksum) {
    throw InputFault(Fault::kChecksum, "a zstd frame's checksum does not match the seek table");
  }
}

std::string zstd_library_version() { return ZSTD_versionString(); }

}  // namespace mxfp4
