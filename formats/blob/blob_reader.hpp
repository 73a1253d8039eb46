// Reads a blob that convert wrote: the manifest, and the tensors of its layer files, plain or in
// seekable zstd.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// The rank directories of the blob at `path`, or the blob itself if it has one rank. `path` may
// also be the model directory around the blob (its mxfp4_repack folder). Empty if `path` is not a
// blob.
[[nodiscard]] std::vector<std::filesystem::path> find_blobs(const std::filesystem::path& path);

// The error for a directory with a blob's layer files whose manifest is not there: a copy or a
// download that is not whole. Nothing for every other directory.
[[nodiscard]] std::optional<Error> part_of_blob(const std::filesystem::path& directory);

// Whether a folder has the name of one rank's part of a blob: "rank-03-of-08".
[[nodiscard]] bool is_rank_directory(std::string_view name);

// What is wrong with the ranks at `directories`, whose manifests are in the same order: a directory
// named after another rank, ranks of different conversions.
[[nodiscard]] std::vector<std::string> check_ranks(
    const std::vector<std::filesystem::path>& directories, const std::vector<Manifest>& manifests);

// A blob: the directories of its ranks, and their manifests in the same order.
struct BlobRanks {
  std::vector<std::filesystem::path> directories;
  std::vector<Manifest> manifests;
};
// The manifests in these directories. Throws Error::input naming the file.
[[nodiscard]] std::vector<Manifest> read_manifests(
    const std::vector<std::filesystem::path>& directories);
// The same, of one blob. Throws what check_ranks finds, too.
[[nodiscard]] BlobRanks read_ranks(std::vector<std::filesystem::path> directories);

// Says in one line that ranks of the blob at `path` are missing; empty if none is, or if `path` is
// one rank's directory.
[[nodiscard]] std::string missing_ranks(const std::filesystem::path& path,
                                        const std::vector<Manifest>& manifests);

// The manifest in `directory`. Throws Error::input naming the file.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& directory);

// A frame that was decoded for a part of it. Small experts share one: who reads them one after
// another decodes it once, whichever files are read in between.
struct DecodedFrame {
  uint64_t reader = 0;  // LayerReader::id(); 0: none
  size_t frame = 0;     // index of its frames()
  UninitializedBytes bytes;
};

// One layer file. Opening checks header, seek table and sizes.
class LayerReader {
 public:
  // Throws Error::input naming the file.
  explicit LayerReader(const std::filesystem::path& path);
  // The same of a file that is open; the error's text has no path.
  explicit LayerReader(PositionedFile file);

  [[nodiscard]] const SafetensorsHeader& header() const { return header_; }
  // The bytes before the data, decoded.
  [[nodiscard]] std::string_view front() const { return front_; }
  [[nodiscard]] PositionedFile& file() { return file_; }
  [[nodiscard]] const PositionedFile& file() const { return file_; }
  [[nodiscard]] bool compressed() const { return !entries_.empty(); }
  // The frames of a compressed file, the header being the first.
  [[nodiscard]] const std::vector<SeekEntry>& frames() const { return entries_; }

  // Different for each that this process opened.
  [[nodiscard]] uint64_t id() const { return id_; }

  // Copies data bytes [offset, offset + out.size()), counted from the start of the data; decodes
  // only the frames that hold them. Throws Error::input. Thread-safe.
  void read(int64_t offset, MutableBytes out) const;
  // The same. Takes a part of a frame from `kept` if that is the frame, and keeps it there if not.
  // Thread-safe for different `kept`.
  void read(int64_t offset, MutableBytes out, DecodedFrame& kept) const;

 private:
  void decode(const SeekEntry& entry, MutableBytes out) const;
  ConstBytes decoded(size_t frame, DecodedFrame& kept) const;

  uint64_t id_;
  PositionedFile file_;
  std::string front_;
  std::vector<SeekEntry> entries_;  // empty: not compressed
  SafetensorsHeader header_;
};

}  // namespace mxfp4
