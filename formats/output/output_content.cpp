#include "formats/output/output_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/output/own_files.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

std::string journal_name(const std::optional<Shard>& shard) {
  return shard ? fmt::format("{}shard-{:03}-of-{:03}.progress", kJournalPrefix, shard->index,
                             shard->count)
               : fmt::format("{}progress", kJournalPrefix);
}

bool is_shard_journal(std::string_view file_name) {
  return file_name.starts_with(fmt::format("{}shard-", kJournalPrefix)) &&
         file_name.ends_with(".progress");
}

std::vector<fs::path> all_blobs(const fs::path& output) {
  std::vector<fs::path> found = find_blobs(output);
  for (const fs::path& blob : find_blobs(output / kBlobFolder)) {
    if (std::ranges::find(found, blob) == found.end()) found.push_back(blob);
  }
  return found;
}

std::vector<fs::path> record_places(const fs::path& output) {
  return {output, output / kBlobFolder};
}

bool is_record(const fs::path& path) {
  const std::string name = path.filename().string();
  if (is_shard_manifest(name)) return true;
  return name.starts_with(kJournalPrefix) && read_journal(path).bytes > 0;
}

bool is_journal_or_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kJournalPrefix) || is_temporary(name);
}

bool is_piece_of_blob(const fs::path& path) {
  if (is_journal_or_temporary(path)) return true;
  return path.filename() == kIndexName ? is_blob_index(path) : is_packed_layer(path);
}

std::string content_text(const fs::path& output, const fs::path& journal) {
  size_t layers = 0;
  std::error_code ignored;
  for (const fs::path& blob : all_blobs(output)) {
    if (fs::exists(blob / kManifestName, ignored)) layers += read_manifest(blob).layers.size();
  }
  if (layers > 0) return fmt::format("a complete result of {} layer files", layers);
  const JournalContent begun = read_journal(journal);
  if (begun.bytes > 0) {
    const auto files = std::ranges::count_if(
        begun.files, [](const auto& entry) { return !entry.second.tensors.empty(); });
    return fmt::format("an unfinished conversion, {} of {} layer files complete", files,
                       begun.layer_files);
  }
  const bool empty = !fs::exists(output, ignored) || fs::is_empty(output, ignored);
  return empty ? "nothing" : "files of an earlier run";
}

}  // namespace mxfp4
