#include "formats/conversion/finalize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/decision/given_path.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/file.hpp"
#include "formats/output/output_directory.hpp"
#include "formats/output/records.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Throws Error::input at the first file that differs from its checksum. The hint names the shard
// that wrote the file.
void check_shard(const fs::path& blob, const ShardManifest& shard, int threads, ReadFrom from,
                 const std::function<void(int64_t)>& progress) {
  const auto require = [&](const std::vector<std::string>& findings) {
    if (findings.empty()) return;
    throw Error::input(findings.front())
        .hint(fmt::format("run shard {}/{} again, with --force", shard.shard.index,
                          shard.shard.count));
  };
  for (const Manifest& manifest : shard.ranks) {
    const fs::path home = (blob / rank_directory(manifest.rank)).lexically_normal();
    require(check_layer_files(home, manifest, threads, progress, from));
  }
  // Shard 0 writes the other files. Not parent_path(), which takes the last name off, also if that
  // is "." or empty.
  if (shard.shard.index == 0) {
    require(check_rest_files((blob / "..").lexically_normal(), shard.ranks.front(), /*sums=*/true,
                             from));
  }
}

// Throws Error::input for a layer file that no shard wrote.
void refuse_others(const fs::path& blob, const std::vector<Manifest>& manifests) {
  for (const Manifest& manifest : manifests) {
    const fs::path home = (blob / rank_directory(manifest.rank)).lexically_normal();
    const std::vector<std::string> findings = check_other_files(home, manifest);
    if (!findings.empty()) {
      throw Error::input(findings.front()).hint("remove it: no shard of this conversion wrote it");
    }
  }
}

// Whether an earlier run wrote all manifests, but was stopped before it had cleaned up.
bool all_written(const fs::path& blob, const ShardManifest& shard) {
  return std::ranges::all_of(shard.ranks, [&](const Manifest& rank) {
    std::error_code ignored;
    return fs::exists(blob / rank_directory(rank.rank) / kManifestName, ignored);
  });
}

void require_directory(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  Error fault = Error::input(error ? fmt::format("cannot be opened: {}", error.message())
                                   : std::string("not a directory"))
                    .in_file(path.string());
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!error && !find_shards(parent).empty()) fault.hint(fmt::format("give {}", parent.string()));
  throw fault;
}

// The records of the shards, which lie in one directory: `output`, or the blob's folder of a
// model directory.
std::vector<fs::path> find_records(const fs::path& output) {
  std::vector<fs::path> found = find_shards(output);
  const auto other = std::ranges::find_if(found, [&](const fs::path& path) {
    return path.parent_path() != found.front().parent_path();
  });
  if (other == found.end()) return found;
  throw Error::input(
      fmt::format("{} and {}: made from different plans", found.front().string(), other->string()))
      .hint("all shards need the same input, flags and program");
}

// Throws Error::input unless there are shards or a result. Called before OutputDirectory, which
// would refuse a checkpoint's directory for the files in it.
void require_shards(const fs::path& output) {
  if (!find_records(output).empty() || !find_blobs(output).empty()) return;
  std::error_code ignored;
  const bool checkpoint = fs::exists(output / "config.json", ignored);
  throw Error::input("no shard is complete here")
      .in_file(output.string())
      .hint(checkpoint ? "a checkpoint? mxfp4-repack convert makes a blob of it"
                       : "mxfp4-repack convert INPUT -o OUT --shard I/N writes one");
}

void check_and_write(const Directory& directory, const std::vector<ShardManifest>& shards,
                     int threads, const FinalizeHooks& hooks, ReadBack read_back) {
  const fs::path& blob = directory.path();
  const std::vector<Manifest> manifests =
      in_context(blob.string(), [&] { return merge_shards(shards); });
  hooks.begin(stored_bytes(manifests));
  const ReadFrom from = read_back == ReadBack::kYes ? ReadFrom::kDevice : ReadFrom::kCache;
  for (const ShardManifest& shard : shards) check_shard(blob, shard, threads, from, hooks.progress);
  refuse_others(blob, manifests);
  write_manifests(directory, manifests, read_back);
}

void append(std::vector<std::string>& findings, const std::vector<std::string>& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

// The result of an earlier run: files may be gone since then. Without `indexed`, not its indexes.
Finalized look_at_result(const fs::path& output, bool indexed) {
  const std::vector<fs::path> ranks = require_blobs(output);
  Finalized result{read_manifests(ranks), {}};
  append(result.findings, check_ranks(ranks, result.manifests));
  const fs::path model = model_directory_of(output, ranks.front());
  if (!model.empty()) {
    append(result.findings, check_rest_files(model, result.manifests.front(), /*sums=*/false));
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    append(result.findings,
           (indexed ? check_blob_files : check_other_files)(ranks[i], result.manifests[i]));
    append(result.findings, check_layer_headers(ranks[i], result.manifests[i]));
  }
  return result;
}

}  // namespace

Finalized finalize(const fs::path& output, int threads, const FinalizeHooks& hooks,
                   ReadBack read_back) {
  require_directory(output);
  require_shards(output);

  // Open: from here on no other process writes `output`. Read every shard's record.
  const OutputDirectory directory(output);
  (void)directory.files();  // refuses foreign ones
  const std::vector<fs::path> records = find_records(output);
  if (records.empty()) {
    require_shards(output);
    return look_at_result(output, /*indexed=*/true);
  }
  std::vector<ShardManifest> shards;
  for (const fs::path& path : records) {
    shards.push_back(read_shard_manifest(path));
    const FileStatus record = in_file(path.string(), [&] { return describe_file(path); });
    keep_private({&record, 1});
  }

  const bool included = records.front().parent_path() == output / kBlobFolder;
  const fs::path place = blob_place(output, included);
  const Directory blob = directory.home().folder(blob_place(".", included)).named(place);

  // Check that every layer of every rank is there and whole, then write the manifests. If an
  // earlier run had written them, the records stay until everything is as the manifests say.
  directory.require_in_place();
  if (!all_written(place, shards.front())) {
    check_and_write(blob, shards, threads, hooks, read_back);
  } else if (Finalized result = look_at_result(output, /*indexed=*/false);
             !result.findings.empty()) {
    return result;
  }

  // Read what will be returned while a fault still leaves the records for another run.
  std::vector<Manifest> manifests = read_manifests(find_blobs(output));

  // Clean up: `output` is complete, and a run that is stopped from here on loses nothing. The
  // records are removed last, since they tell the next run that files are left to remove.
  for (const fs::path& file : directory.files()) {
    // Without locks a temporary may be another run's.
    if (!directory.locked() && is_temporary(file.filename())) continue;
    if (is_journal_or_temporary(file)) directory.home().remove(file);
  }
  for (const fs::path& path : records) blob.remove(path.filename());
  return {std::move(manifests), {}};
}

}  // namespace mxfp4
