// zstd files that can be read from the middle: independent frames followed by a seek table in a
// skippable frame (zstd's seekable format,
// contrib/seekable_format/zstd_seekable_compression_format, version 0.1.0). Any zstd reader accepts
// the file; a reader that knows the table decodes only the frames it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// One frame of the file. Sizes fit 32 bits, as the table's fields do.
struct FrameInfo {
  int64_t encoded = 0;
  int64_t decoded = 0;
  uint32_t checksum = 0;  // low half of XXH64 (seed 0) over the decoded bytes
};

// Largest decoded frame that is written or accepted.
inline constexpr int64_t kMaxFrameBytes = int64_t{64} << 20;

// Frames that were encoded one after another. Compressed ones lie here; raw ones refer to the bytes
// that they were made from, so that storing them costs one copy, into the file. Reusable.
class EncodedFrames {
 public:
  void clear();
  [[nodiscard]] const std::vector<FrameInfo>& frames() const { return frames_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  // Everything in file order; valid until the next change here, and as long as what was encoded.
  [[nodiscard]] std::vector<ConstBytes> spans() const;

 private:
  friend class FrameEncoder;
  // Either bytes of `own_` or, with size alone, the next bytes of a raw frame.
  struct Part {
    const std::byte* raw = nullptr;  // null: in `own_`, behind the part before
    size_t size = 0;
  };
  void add_own(ConstBytes bytes);
  void add_raw(ConstBytes bytes);
  void add_raw_frame(ConstBytes in, uint32_t checksum);

  std::vector<FrameInfo> frames_;
  std::vector<std::byte> own_;
  std::vector<Part> parts_;
  int64_t bytes_ = 0;
};

// Encodes frames, one after another; owns a zstd context. Not thread-safe: one encoder a worker.
class FrameEncoder {
 public:
  explicit FrameEncoder(int level);
  FrameEncoder(FrameEncoder&&) noexcept;
  FrameEncoder& operator=(FrameEncoder&&) noexcept;
  ~FrameEncoder();

  // Appends one frame that decodes to `in` (1 .. kMaxFrameBytes bytes) to `out`. A frame that would
  // not shrink by 2 % is stored raw, so that decoding it costs a copy; incompressible data is
  // recognised from a sample. Same bytes for same input, level and zstd release. `sum`, if there is
  // one, is updated with `in` while that is in the cache.
  void encode(ConstBytes in, EncodedFrames& out, ChecksumPart* sum = nullptr);
  // The same, the frame's bytes appended to `out`.
  FrameInfo encode(ConstBytes in, std::vector<std::byte>& out);

 private:
  friend int64_t encoder_bytes(int level, int64_t frame_bytes);
  struct Context;
  std::unique_ptr<Context> context_;
};

// Bytes of memory that an encoder takes once it has encoded a frame of this many bytes.
[[nodiscard]] int64_t encoder_bytes(int level, int64_t frame_bytes);

// The skippable frame that ends the file: one entry a frame, with checksums.
[[nodiscard]] std::vector<std::byte> make_seek_table(const std::vector<FrameInfo>& frames);

// Where each frame lies.
struct SeekEntry {
  FrameInfo frame;
  int64_t encoded_offset = 0;
  int64_t decoded_offset = 0;
};

// Reads and checks the table at the end of `file`: the magic numbers, that the frames tile the file
// before the table exactly, that every size is within bounds. Throws Error::input.
[[nodiscard]] std::vector<SeekEntry> read_seek_table(ConstBytes file);

// True when `file` starts with a zstd frame.
[[nodiscard]] bool is_zstd(ConstBytes file);

// Decodes one frame to exactly `out` and checks its size and both checksums. Throws Error::input.
// Thread-safe.
void decode_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out);

// "1.5.4": the library this program runs with.
[[nodiscard]] std::string zstd_library_version();

}  // namespace mxfp4
