#include "formats/output/unfinished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/os/directory.hpp"
#include "formats/output/observe.hpp"
#include "formats/output/own_files.hpp"
#include "formats/output/replacement.hpp"
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

void refuse_journal(const fs::path& path, const fs::path& blob) {
  const JournalContent journal = read_journal(blob / journal_name({}));
  if (journal.bytes == 0 || journal.ready) return;
  if (journal.plan == kUnpackPlan) {
    throw Error::input(fmt::format("{}: unfinished: an unpack was cut off here", path.string()))
        .hint("unpack with --force makes it again");
  }
  if (layers_in_manifests(blob) >= journal.layer_files) return;  // killed after the last manifest
  throw Error::input(fmt::format("{}: unfinished: {} of {} layer files are complete", path.string(),
                                 finished_layers(journal), journal.layer_files))
      .hint("convert with the same flags and --resume goes on");
}

void refuse_shards(const fs::path& path, const fs::path& blob) {
  const std::vector<fs::path> shards = find_shard_manifests(blob);
  if (shards.empty()) return;
  const ShardManifest first = read_shard_manifest(shards.front());
  const auto layers = static_cast<int64_t>(first.layers.size() * first.ranks.size());
  if (layers_in_manifests(blob) >= layers) return;
  const auto complete = static_cast<int64_t>(shards.size());
  throw Error::input(fmt::format("{}: unfinished: {} of {} shards are complete", path.string(),
                                 complete, first.shard.count))
      .hint(complete < first.shard.count ? "convert --shard for the others, then finalize"
                                         : "finalize puts them together");
}

// Refuses an OUT that a replacement left without a name: a file system that cannot exchange two
// names needs a moment between two renames.
void refuse_replacement(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored))) return;
  for (const fs::path& folder : Replacement::folders(path)) {
    if (!fs::exists(folder, ignored)) continue;
    throw Error::input(fmt::format("{}: missing: a --force that was cut off left {}", path.string(),
                                   folder.string()))
        .hint("the same command with --resume puts the result in its place");
  }
}

}  // namespace

void refuse_unfinished(const fs::path& path) {
  refuse_replacement(path);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  for (const fs::path& blob : record_places(path)) {
    refuse_journal(path, blob);
    refuse_shards(path, blob);
  }
}

}  // namespace mxfp4
