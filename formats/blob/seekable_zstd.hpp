// zstd files that can be read from the middle: independent frames followed by a seek table in a
// skippable frame (zstd's seekable format,
// contrib/seekable_format/zstd_seekable_compression_format, version 0.1.0). Any zstd reader accepts
// the file; a reader that knows the table decodes only the frames it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/raw_frames.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Shortens frames. Not thread-safe: each worker needs its own.
class FrameEncoder {
 public:
  // Level 1 shortens runs of one value, so that decoding is a copy. Level 2 codes single bytes by
  // their frequency, without a search for repeats: padding aside, block scales have only short
  // repeats, and coding those makes frames larger and takes twice the time. Levels from 3 on are
  // zstd's. Codes have no repeats: at every level only their runs are shortened.
  explicit FrameEncoder(int level);
  ~FrameEncoder();

  // Appends one frame that decodes to `in` (1 .. kMaxFrameBytes bytes) to `out`, if it is shorter by
  // 2 % or more. The same input, level and release of zstd give the same bytes.
  std::optional<FrameInfo> shorten(ConstBytes in, bool codes, std::vector<std::byte>& out);
  // The same for bytes that are no codes; a frame that would not be shorter is a raw one.
  FrameInfo encode(ConstBytes in, std::vector<std::byte>& out);

 private:
  friend int64_t encoder_bytes(int level, int64_t frame_bytes);
  struct Context;
  std::unique_ptr<Context> runs_, level_;  // made when they are needed; at level 1 runs_ is both
  int wanted_;
};

// Bytes of memory that an encoder takes at most, for frames of `frame_bytes` decoded bytes.
[[nodiscard]] int64_t encoder_bytes(int level, int64_t frame_bytes);

// The skippable frame that ends the file: one entry a frame, with checksums.
[[nodiscard]] std::vector<std::byte> make_seek_table(const std::vector<FrameInfo>& frames);

// Where each frame lies.
struct SeekEntry {
  FrameInfo frame;
  int64_t encoded_offset = 0;
  int64_t decoded_offset = 0;
};

// Bytes of the footer at the end of a seek table, which says how long the table is.
inline constexpr int64_t kSeekFooterBytes = 9;

// Size of the table at the end of a file of `file_bytes` bytes. `end`: the file's last bytes, at
// least kSeekFooterBytes of them, or the whole file if it is shorter. Throws Error::input.
[[nodiscard]] int64_t seek_table_bytes(ConstBytes end, int64_t file_bytes);

// Reads the table at the end of a file of `file_bytes` bytes. `end`: the file's last bytes, the
// whole table among them. Checks the magic numbers, that the frames tile the file before the table
// exactly, and that every size is within bounds. Throws Error::input.
[[nodiscard]] std::vector<SeekEntry> read_seek_table(ConstBytes end, int64_t file_bytes);

// True when `file` starts with a zstd frame.
[[nodiscard]] bool is_zstd(ConstBytes file);

// Decodes one frame to exactly `out`. Checks its size and, as `check` says, that its content has
// the frame's checksum and the seek table's. Throws Error::input. Thread-safe.
void decode_frame(ConstBytes encoded, const FrameInfo& info, MutableBytes out,
                  FrameCheck check = FrameCheck::kChecksums);

// "1.5.4": the library this program runs with.
[[nodiscard]] std::string zstd_library_version();

}  // namespace mxfp4
