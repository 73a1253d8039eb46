#include "formats/output/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

bool is_temporary(const std::string& file_name) {
  return file_name.starts_with('.') && file_name.size() > 1 + kTemporaryEnd &&
         std::string_view(file_name).substr(file_name.size() - kTemporaryEnd).starts_with(".tmp-");
}

std::vector<fs::path> record_places(const fs::path& output) {
  return {output, output / kBlobFolder};
}

fs::path blob_place(const fs::path& home, bool include_rest) {
  return include_rest ? home / kBlobFolder : home;
}

std::string journal_name(const std::optional<Shard>& shard) {
  if (!shard) return fmt::format("{}progress", kJournalPrefix);
  return fmt::format("{}shard-{:03}-of-{:03}.progress", kJournalPrefix, shard->index, shard->count);
}

int64_t finished_layers(const JournalContent& journal) {
  return std::ranges::count_if(journal.files,
                               [](const auto& entry) { return !entry.second.tensors.empty(); });
}

BegunRun find_run(const fs::path& output, const std::optional<Shard>& shard) {
  BegunRun found;
  for (const fs::path& place : record_places(output)) {
    JournalContent journal = read_journal(place / journal_name(shard));
    if (journal.bytes == 0 || !found.journal.files.empty()) continue;
    found = {std::move(journal), place, place != output};
  }
  return found;
}

std::vector<fs::path> find_shards(const fs::path& output) {
  std::vector<fs::path> found;
  for (const fs::path& place : record_places(output)) {
    for (fs::path& path : find_shard_manifests(place)) found.push_back(std::move(path));
  }
  return found;
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

}  // namespace mxfp4
