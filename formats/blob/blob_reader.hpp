// Reads a blob that convert wrote: the manifest, and the tensors of its layer files, whole or
// inside seekable zstd.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"

namespace mxfp4 {

// The rank directories of a blob, or the blob itself when there is one rank; also inside a model
// directory (in its mxfp4_repack folder). Empty when `path` is no blob.
[[nodiscard]] std::vector<std::filesystem::path> find_blobs(const std::filesystem::path& path);

// Whether a folder has the name of one rank's part of a blob: "rank-03-of-08".
[[nodiscard]] bool is_rank_directory(std::string_view name);

// What the ranks at `directories`, with manifests in the same order, contradict each other in: a
// directory named after another rank, ranks of different conversions.
[[nodiscard]] std::vector<std::string> check_ranks(
    const std::vector<std::filesystem::path>& directories, const std::vector<Manifest>& manifests);

// Which ranks of the blob at `path` are not there, as one line; empty when none is missing, or when
// `path` is one rank's directory.
[[nodiscard]] std::string missing_ranks(const std::filesystem::path& path,
                                        const std::vector<Manifest>& manifests);

// The manifest in `directory`. Throws Error::input naming the file.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& directory);

// Whether the file is a packed layer, as far as its header goes.
[[nodiscard]] bool is_packed_layer(const std::filesystem::path& path);

// One layer file. Opening checks header, seek table and sizes; Error::input names the file.
class LayerReader {
 public:
  explicit LayerReader(const std::filesystem::path& path);

  [[nodiscard]] const SafetensorsHeader& header() const { return header_; }
  [[nodiscard]] int64_t file_bytes() const { return static_cast<int64_t>(map_.bytes().size()); }
  [[nodiscard]] ConstBytes stored() const { return map_.bytes(); }
  [[nodiscard]] bool compressed() const { return !entries_.empty(); }
  // The frames of a compressed file, the header being the first.
  [[nodiscard]] const std::vector<SeekEntry>& frames() const { return entries_; }

  // Copies data bytes [offset, offset + out.size()), counted from the start of the data, decoding
  // only the frames that hold them. What was read no longer takes memory of this process. Throws
  // Error::input. Thread-safe.
  void read(int64_t offset, MutableBytes out) const;

 private:
  MappedFile map_;
  std::vector<SeekEntry> entries_;  // empty: not compressed
  SafetensorsHeader header_;
};

}  // namespace mxfp4
