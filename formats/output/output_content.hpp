// Recognises what the directory of a conversion holds already: results, records of unfinished runs,
// and pieces of blobs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/plan/shard.hpp"

namespace mxfp4 {

// The name of the journal of a whole conversion, or of one shard's.
[[nodiscard]] std::string journal_name(const std::optional<Shard>& shard);
// Whether it is the name of a shard's journal.
[[nodiscard]] bool is_shard_journal(std::string_view file_name);

// The directories of the blobs in `output` and in its folder mxfp4_repack, finished or not.
[[nodiscard]] std::vector<std::filesystem::path> all_blobs(const std::filesystem::path& output);

// The places where a conversion into `output` keeps its records: `output` itself, and its folder
// mxfp4_repack (--include-rest).
[[nodiscard]] std::vector<std::filesystem::path> record_places(const std::filesystem::path& output);

// Whether the file is a record that a conversion was begun: a shard's manifest, or a journal that
// can be read.
[[nodiscard]] bool is_record(const std::filesystem::path& path);

// Whether the file is a journal or a temporary, judged by its name.
[[nodiscard]] bool is_journal_or_temporary(const std::filesystem::path& path);

// Whether the file is a journal, a temporary, a blob's index or a packed layer: what an unfinished
// conversion may leave.
[[nodiscard]] bool is_piece_of_blob(const std::filesystem::path& path);

// "a complete result of 36 layer files", "nothing", ...; `journal` is the path of the journal of
// the conversion or shard that is asked about. Throws Error::input for a damaged manifest.
[[nodiscard]] std::string content_text(const std::filesystem::path& output,
                                       const std::filesystem::path& journal);

}  // namespace mxfp4
