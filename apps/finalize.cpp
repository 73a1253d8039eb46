// finalize: after several convert --shard runs into one directory, check that all is there and
// whole, and write the manifest that one process would have written.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/conversion/output_directory.hpp"
#include "formats/os/atomic_file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The first difference between the files and their checksums is the error.
void check_files(const fs::path& blob, const std::vector<Manifest>& manifests, int threads,
                 Progress& progress) {
  const auto require = [](const std::vector<std::string>& findings) {
    if (!findings.empty()) {
      throw Error::input(findings.front()).hint("run that shard again, with --force");
    }
  };
  for (const Manifest& manifest : manifests) {
    const fs::path home = blob / rank_directory(manifest.rank);
    require(check_layer_files(home, manifest, threads,
                              [&](int64_t bytes) { progress.advance(bytes); }));
    require(check_other_files(home, manifest));
  }
  require(check_rest_files(blob.parent_path(), manifests.front()));
}

// True when an earlier finalize wrote all manifests, but was stopped before it had cleaned up.
bool all_written(const fs::path& blob, const ShardManifest& shard) {
  return std::ranges::all_of(shard.ranks, [&](const Manifest& rank) {
    std::error_code ignored;
    return fs::exists(blob / rank_directory(rank.rank) / kManifestName, ignored);
  });
}

// `seconds`: how long the check took; empty when an earlier run had done it.
int report(const FinalizeOptions& options, const std::vector<Manifest>& manifests,
           std::optional<double> seconds, const Console& console) {
  warn_of_missing_ranks(options.output, manifests, console);
  if (options.model_card) add_model_card(options.output, console);
  size_t files = 0;
  for (const Manifest& manifest : manifests) files += manifest.layers.size();
  if (console.json()) {
    Json json = json_document("finalize");
    json["output"] = options.output.string();
    json["complete"] = true;
    json["num_ranks"] = manifests.size();
    json["num_layer_files"] = files;
    json["stored_bytes"] = stored_bytes(manifests);
    json["elapsed_seconds"] = seconds ? Json(*seconds) : Json();
    console.result_json(json);
  } else {
    const std::string out = shell_word(options.output.string());
    const int64_t bytes = stored_bytes(manifests);
    console.say(fmt::format(
        "{}: complete, {}, {}; next: mxfp4-repack verify {}", out, count_of(files, "layer file"),
        seconds ? "checked " + pace(bytes, bytes, *seconds) : human_bytes(bytes), out));
  }
  return kOk;
}

void require_directory(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  throw Error::input(
      fmt::format("{}: {}", path.string(), error ? error.message() : "not a directory"));
}

struct ShardRecords {
  fs::path blob;  // where they lie: OUT, or the blob's folder of a model directory
  std::vector<fs::path> paths;
};

ShardRecords find_records(const fs::path& output) {
  std::vector<fs::path> paths = find_shard_manifests(output);
  if (!paths.empty()) return {output, std::move(paths)};
  const fs::path blob = output / kBlobFolder;
  return {blob, find_shard_manifests(blob)};
}

int already_complete(const FinalizeOptions& options, const Console& console) {
  const std::vector<fs::path> blobs = find_blobs(options.output);
  if (!blobs.empty()) return report(options, read_manifests(blobs), std::nullopt, console);
  throw Error::input(fmt::format("{}: no shard is complete here", options.output.string()));
}

}  // namespace

int run_finalize(const FinalizeOptions& options, const Console& console) {
  require_directory(options.output);

  // Open: OUT is ours alone, and every shard's record is at hand.
  OutputDirectory directory(options.output, OutputMode::kJoin);
  const ShardRecords records = find_records(options.output);
  if (records.paths.empty()) return already_complete(options, console);
  std::vector<ShardManifest> shards;
  for (const fs::path& path : records.paths) shards.push_back(read_shard_manifest(path));

  // Check and commit: every layer of every rank is there and whole, so the manifests may say so.
  std::optional<double> seconds;
  if (!all_written(records.blob, shards.front())) {
    const std::vector<Manifest> manifests =
        in_context(records.blob.string(), [&] { return merge_shards(std::move(shards)); });
    Progress progress(console, stored_bytes(manifests));
    check_files(records.blob, manifests, options.resources.threads, progress);
    progress.finish();
    seconds = progress.seconds();
    write_manifests(records.blob, manifests);
  }

  // Clean up: OUT is complete, and a run that is stopped from here on loses nothing. The records go
  // last, since they tell the next run that something is left to remove.
  for (const fs::path& file : directory.files()) {
    const std::string name = file.filename().string();
    if (name.starts_with(kJournalPrefix) || is_temporary(name)) remove_file(options.output / file);
  }
  for (const fs::path& path : records.paths) remove_file(path);
  return report(options, read_manifests(find_blobs(options.output)), seconds, console);
}

}  // namespace mxfp4
