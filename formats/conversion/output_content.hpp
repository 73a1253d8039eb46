// What the directory of a conversion holds already: results, records of unfinished runs, and pieces
// of blobs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/plan/shard.hpp"

namespace mxfp4 {

// The name of the journal of a whole conversion, or of one shard's.
[[nodiscard]] std::string journal_name(const std::optional<Shard>& shard);

// The directories of the blobs in `output`, finished or not: there, or in the blob's folder of a
// model directory.
[[nodiscard]] std::vector<std::filesystem::path> all_blobs(const std::filesystem::path& output);

// Whether the file says that a conversion was begun in its directory.
[[nodiscard]] bool is_record(const std::filesystem::path& path);

// By its name.
[[nodiscard]] bool is_journal_or_temporary(const std::filesystem::path& path);

// Whether the file is a piece of a blob, which is no result without its manifest.
[[nodiscard]] bool is_piece_of_blob(const std::filesystem::path& path);

// "a complete result of 36 layer files", "nothing", ...; `journal` is that of the conversion or
// shard that is asked about. Throws Error::input for a damaged manifest.
[[nodiscard]] std::string content_text(const std::filesystem::path& output,
                                       const std::filesystem::path& journal);

}  // namespace mxfp4
