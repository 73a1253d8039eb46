#include "formats/decision/unfinished.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
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

// Whether another process of this machine writes in the directory: it holds a lock
// (output_directory.cpp), which the kernel lists. Taking the lock to find out could stop a writer
// that begins at that moment. False where the list does not tell.
bool is_being_written(const fs::path& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return false;
  const std::string place =
      fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream text(line);
    std::array<std::string, 6> words;  // number, kind, mode, access, process, place
    for (std::string& word : words) text >> word;
    const bool own = words[4] == std::to_string(::getpid());
    if (words[1] == "FLOCK" && words[5] == place && !own) return true;
  }
  return false;
}

// What is said of a directory that is not complete, and what helps.
Error incomplete(const fs::path& path, const fs::path& blob, const std::string& how_far,
                 const std::string& hint) {
  const bool live = is_being_written(path) || is_being_written(blob);
  return Error::input(fmt::format("{}: {}", live ? "is being written" : "unfinished", how_far))
      .in_file(path.string())
      .hint(live ? "wait until the process that writes it has ended" : hint);
}

void refuse_journal(const fs::path& path, const fs::path& blob) {
  const JournalContent journal = read_journal(blob / journal_name({}));
  if (journal.bytes == 0 || journal.ready) return;
  if (journal.plan == kUnpackPlan) {
    const bool live = is_being_written(path);
    throw incomplete(path, blob, live ? "an unpack has not ended" : "an unpack was cut off here",
                     "unpack with --force makes it again");
  }
  if (layers_in_manifests(blob) >= journal.layer_files) return;  // killed after the last manifest
  throw incomplete(path, blob,
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
  throw incomplete(path, blob,
                   fmt::format("{} of {} shards are complete", complete, first.shard.count),
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
