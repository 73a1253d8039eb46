// The first and the last steps of commands that take a blob.
#pragma once

#include <filesystem>
#include <vector>

#include "apps/console.hpp"
#include "formats/blob/blob_reader.hpp"

namespace mxfp4 {

// The directories of a blob's ranks. Throws Error::input where there is no complete
// blob; of an unfinished conversion it says how far that came.
[[nodiscard]] std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path);

// Their manifests, in the same order. Throws Error::input naming the file.
[[nodiscard]] std::vector<Manifest> read_manifests(const std::vector<std::filesystem::path>& blobs);

// Warns of ranks that the blob at `path`, whose manifests these are, should have and has not.
void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console);

// Writes the model card of the complete blob at `path` and says how to upload it. Throws
// Error::output.
void add_model_card(const std::filesystem::path& path, const Console& console);

}  // namespace mxfp4
