// The blob or checkpoint that a path given to a command stands for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "formats/blob/blob_reader.hpp"

namespace mxfp4 {

// The directories of a blob's ranks. Throws Error::input where there is no complete
// blob; of an unfinished conversion it says how far that came.
[[nodiscard]] std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path);

// Their manifests, in the same order. Throws Error::input naming the file.
[[nodiscard]] std::vector<Manifest> read_manifests(const std::vector<std::filesystem::path>& blobs);

// A blob: the directories of its ranks, and their manifests in the same order.
struct BlobRanks {
  std::vector<std::filesystem::path> directories;
  std::vector<Manifest> manifests;
};

// The blob at `path`. Throws Error::input also where its ranks contradict each other.
[[nodiscard]] BlobRanks open_blob_ranks(const std::filesystem::path& path);

// The checkpoint or blob that `path` is a part of: the directory of a config.json or a manifest, of
// a file that a checkpoint's index lists, of a blob's layer file, whose number `layer` becomes unless
// it has one; the snapshot in a Hugging Face cache or in its folder for one model. Any other path as
// it is. Throws Error::input where a cache does not tell which one is meant.
[[nodiscard]] std::filesystem::path whole_of(const std::filesystem::path& path,
                                             std::optional<int64_t>& layer);

}  // namespace mxfp4
