#include "formats/decision/unfinished.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/output/records.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Layer files that complete manifests name, of all ranks in `blob`.
int64_t layers_in_manifests(const fs::path& blob) {
  int64_t count = 0;
  for (const fs::path& rank : find_blobs(blob)) {
    try {
      count += static_cast<int64_t>(read_manifest(rank).layers.size());
    } catch (const Error&) {
      // Missing or damaged: this rank is not complete.
    }
  }
  return count;
}

// What is said of a directory that is not complete, and what helps.
Error incomplete(const fs::path& path, const std::string& how_far, const std::string& hint) {
  return Error::input(fmt::format("unfinished: {}", how_far)).in_file(path.string()).hint(hint);
}

void refuse_journal(const fs::path& path, const fs::path& blob) {
  const JournalContent journal = read_journal(blob / journal_name({}));
  if (journal.bytes == 0 || journal.ready) return;
  if (journal.plan == kUnpackPlan) {
    throw incomplete(path, "an unpack has not ended", "unpack with --force makes it again");
  }
  if (layers_in_manifests(blob) >= journal.layer_files) return;  // killed after the last manifest
  throw incomplete(path,
                   fmt::format("{} of {} layer files are complete", finished_layers(journal),
                               journal.layer_files),
                   "convert with the same flags and --resume goes on");
}

void refuse_shards(const fs::path& path, const fs::path& blob) {
  const std::vector<fs::path> shards = find_shard_manifests(blob);
  if (shards.empty()) return;
  const ShardManifest first = read_shard_manifest(shards.front());
  const auto layers = static_cast<int64_t>(first.layers.size() * first.ranks.size());
  if (layers_in_manifests(blob) >= layers) return;
  const auto complete = static_cast<int64_t>(shards.size());
  throw incomplete(path, fmt::format("{} of {} shards are complete", complete, first.shard.count),
                   complete < first.shard.count ? "convert --shard for the others, then finalize"
                                                : "finalize puts them together");
}

}  // namespace

void refuse_unfinished(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  for (const fs::path& blob : record_places(path)) {
    refuse_journal(path, blob);
    refuse_shards(path, blob);
  }
}

}  // namespace mxfp4
