// Finds the blob or checkpoint that the user means by a path, and refuses a path that would
// hide one.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/blob/blob_reader.hpp"

namespace mxfp4 {

// The directories of the ranks of the blob at `path`. Throws Error::input if there is no complete
// blob; if there is an unfinished conversion, the error says how far it came.
[[nodiscard]] std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path);

// The blob at `path`. Throws Error::input if there is none, or if its ranks contradict each other.
[[nodiscard]] BlobRanks open_blob_ranks(const std::filesystem::path& path);

// The directory of a config.json or a manifest; any other path is returned unchanged.
[[nodiscard]] std::filesystem::path whole_of(const std::filesystem::path& path);

// Throws Error::usage if `output` would make a blob of the directory that `checkpoint` is or lies
// in: if it is, or lies in, a folder there that has the name of a blob's folder or of a rank's.
void refuse_blob_folder_in(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& output);

}  // namespace mxfp4
