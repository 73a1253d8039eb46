#include "formats/conversion/finalize.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/os/file.hpp"
#include "formats/output/given_path.hpp"
#include "formats/output/observe.hpp"
#include "formats/output/sibling.hpp"
#include "formats/output/unfinished.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Throws Error::input at the first file that differs from its checksum. The hint names the shard
// that wrote the file.
void check_shard(const fs::path& blob, const JournalContent& shard,
                 const std::vector<Manifest>& manifests, int threads,
                 const std::function<void(int64_t)>& progress) {
  const auto require = [&](const std::vector<std::string>& findings) {
    if (findings.empty()) return;
    throw Error::input(findings.front())
        .hint(fmt::format("run shard {}/{} again, with --force", shard.shard->index,
                          shard.shard->count));
  };
  for (Manifest manifest : manifests) {
    std::erase_if(manifest.layers, [&](const ManifestLayer& layer) {
      return !shard.files.contains(name_in_blob(manifest.rank, layer.file));
    });
    const fs::path home = (blob / rank_directory(manifest.rank)).lexically_normal();
    require(check_layer_files(home, manifest, threads, progress));
  }
  // Shard 0 writes the other files.
  if (shard.shard->index == 0) {
    require(check_rest_files((blob / "..").lexically_normal(), manifests.front(), /*sums=*/true));
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

std::string named(const JournalContent& shard) {
  return fmt::format("shard {}/{}", shard.shard->index, shard.shard->count);
}

// The manifests that a single process would have written. `shards` are sorted by index.
std::vector<Manifest> merged(const std::vector<JournalContent>& shards) {
  const JournalContent& first = shards.front();
  FinishedFiles files;
  std::set<std::string> warnings;
  std::set<int64_t> missing;
  for (int64_t index = 0; index < first.shard->count; ++index) missing.insert(index);
  for (const JournalContent& shard : shards) {
    if (shard.plan != first.plan || shard.shard->count != first.shard->count) {
      throw Error::input(
          fmt::format("{} and {}: made from different plans", named(first), named(shard)))
          .hint("all shards need the same input, flags and program");
    }
    for (const JournalContent& other : shards) {
      if (!shard.source.contradicts(other.source)) continue;
      throw Error::input(
          fmt::format("{} and {}: the input changed in between", named(shard), named(other)))
          .hint("run the older one again, with --force");
    }
    if (shard.ready) missing.erase(shard.shard->index);
    files.insert(shard.files.begin(), shard.files.end());
    warnings.insert(shard.warnings.begin(), shard.warnings.end());
  }
  if (!missing.empty()) {
    throw Error::input(
        fmt::format("{}, missing: {}", shards_text(shards), fmt::join(missing, ", ")))
        .hint("run convert --shard for those, with --resume");
  }
  std::vector<Manifest> manifests = filled(first.planned, files);
  for (Manifest& manifest : manifests) {
    manifest.warnings.insert(manifest.warnings.end(), warnings.begin(), warnings.end());
  }
  return manifests;
}

// The result of an earlier run: files may be gone since then.
Finalized look_at_result(const fs::path& output) {
  const std::vector<fs::path> ranks = require_blobs(output);
  Finalized result{read_manifests(ranks), check_ranks(ranks, read_manifests(ranks))};
  const auto append = [&](const std::vector<std::string>& more) {
    result.findings.insert(result.findings.end(), more.begin(), more.end());
  };
  const fs::path model = model_directory_of(output, ranks.front());
  if (!model.empty()) {
    append(check_rest_files(model, result.manifests.front(), /*sums=*/false));
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    append(check_blob_files(ranks[i], result.manifests[i]));
    append(check_layer_headers(ranks[i], result.manifests[i]));
  }
  return result;
}

}  // namespace

Finalized finalize(const fs::path& output, int threads, const FinalizeHooks& hooks) {
  std::error_code error;
  (void)fs::exists(output, error);
  if (error) {
    throw Error::input(fmt::format("cannot be opened: {}", error.message()))
        .in_file(output.string());
  }

  // From here on no other process writes `output`.
  Sibling sibling(output);
  const fs::path home = sibling_of(output) / kResultFolder;
  const std::vector<JournalContent> shards = read_journals(home.parent_path());
  if (sibling.occupied()) {
    Finalized result = look_at_result(output);
    // A run that was stopped behind the last step may have left them.
    if (sibling.there() && !fs::exists(home, error)) sibling.remove(/*replaced=*/false);
    return result;
  }
  if (shards.empty() || !shards.front().shard) {
    throw Error::input("no shard is complete here")
        .in_file(output.string())
        .hint("mxfp4-repack convert INPUT -o OUT --shard I/N writes one");
  }

  // Check that every layer of every rank is there and whole, then write the manifests.
  const std::vector<Manifest> manifests =
      in_context(output.string(), [&] { return merged(shards); });
  const bool included = !manifests.front().rest.empty();
  const fs::path blob = blob_place(home, included);
  hooks.begin(stored_bytes(manifests));
  for (const JournalContent& shard : shards) {
    const fs::path path = home.parent_path() / journal_name(shard.shard);
    const FileStatus record = in_file(path.string(), [&] { return describe_file(path); });
    keep_private({&record, 1});
    check_shard(blob, shard, manifests, threads, hooks.progress);
  }
  refuse_others(blob, manifests);
  sibling.make();
  sibling.keep();
  sibling.require_exchange();
  write_manifests(sibling.result().folder(blob_place(".", included)), manifests);
  return {manifests, {}, sibling.publish(Sibling::Into::kFree)};
}

}  // namespace mxfp4
