// The records of a conversion that is not complete: the journals of its runs, and the manifests
// of shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/journal.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// Temporaries are called ".NAME.tmp-AbCd12": the length of what is behind NAME.
inline constexpr size_t kTemporaryEnd = 11;
// Whether a temporary has this name. If no process writes the directory, its run is over.
[[nodiscard]] bool is_temporary(const std::string& file_name);

// The beginning of every journal's name.
inline constexpr std::string_view kJournalPrefix = ".mxfp4_repack.";
// What an unpack's journal has in place of a plan's identity.
inline constexpr std::string_view kUnpackPlan = "unpack";

// The directories in which a conversion into `output` keeps its records: `output`, and its folder
// mxfp4_repack (--include-rest).
[[nodiscard]] std::vector<std::filesystem::path> record_places(const std::filesystem::path& output);
// The directory of a conversion's blob.
[[nodiscard]] std::filesystem::path blob_place(const std::filesystem::path& home,
                                               bool include_rest);
// The name of the journal of a whole conversion, or of one shard's.
[[nodiscard]] std::string journal_name(const std::optional<Shard>& shard);
// How many layer files the journal names.
[[nodiscard]] int64_t finished_layers(const JournalContent& journal);

// A run that has not ended.
struct BegunRun {
  JournalContent journal{};       // of 0 bytes: there is none
  std::filesystem::path place{};  // the directory that the journal lies in
  bool include_rest = false;      // which is the blob's folder of a model directory
};
// The run of a whole conversion into `output`, or of one shard of it. If both places have one, the
// run that finished a file.
[[nodiscard]] BegunRun find_run(const std::filesystem::path& output,
                                const std::optional<Shard>& shard);
// The manifests of shards in all places of `output`.
[[nodiscard]] std::vector<std::filesystem::path> find_shards(const std::filesystem::path& output);

// Whether the file is a record that a conversion was begun: a shard's manifest, or a journal that
// can be read.
[[nodiscard]] bool is_record(const std::filesystem::path& path);
// Whether the file is a journal or a temporary, judged by its name.
[[nodiscard]] bool is_journal_or_temporary(const std::filesystem::path& path);

}  // namespace mxfp4
