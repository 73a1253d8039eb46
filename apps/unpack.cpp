// unpack: restores every layer in the loaded layout, without padding, or as the checkpoint has it.
#include <fmt/format.h>

#include <optional>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "apps/json_output.hpp"
#include "apps/request.hpp"
#include "apps/summary.hpp"
#include "apps/text_layout.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/conversion/restore.hpp"
#include "formats/output/observe.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

RunHooks hooks_for(Progress& progress) {
  return {.progress = [&](int64_t bytes) { progress.advance(bytes); },
          .check_stop = check_interrupted};
}

std::vector<FileStatus> describe_manifests(const std::vector<fs::path>& blobs) {
  std::vector<FileStatus> files;
  for (const fs::path& blob : blobs) {
    const fs::path path = blob / kManifestName;
    files.push_back(in_file(path.string(), [&] { return status_at(path); }));
  }
  return files;
}

// Restores all layers of all ranks into `home`.
RestoreResult restore_all(const UnpackOptions& options, const std::vector<fs::path>& blobs,
                          const std::vector<Manifest>& manifests, const Directory& home,
                          const RunHooks& hooks) {
  RestoreResult all;
  for (size_t i = 0; i < blobs.size(); ++i) {
    RestoreResult rank =
        restore_blob(blobs[i], manifests[i], home.folder(rank_directory(manifests[i].rank)),
                     options.resources, hooks);
    all.files += rank.files;
    all.bytes += rank.bytes;
    all.lost.merge(rank.lost);
  }
  return all;
}

// The checkpoint's own tensors. Throws Error::unsupported if the layout keeps nothing of some
// of them.
BlobSource open_as_published(const UnpackOptions& options) {
  BlobSource blob = open_blob_source(options.blob);
  if (blob.whole) return blob;
  throw Error::unsupported(
      fmt::format("the blob has a part of its checkpoint only: {}", blob.lost.front()))
      .in_file(options.blob.string())
      .hint("unpack without --as-published writes that part");
}

// What a run wrote, in words and as JSON.
void report_unpacked(const UnpackOptions& options, const RestoreResult& restored,
                     const std::vector<Manifest>& manifests, double seconds,
                     const Console& console) {
  for (const std::string& text : restored.lost) console.warn(text);
  if (console.json()) {
    Json json = json_document("unpack");
    json["output"] = options.output.string();
    json["as_published"] = options.as_published;
    json["num_ranks"] = manifests.size();
    json["num_layer_files"] = restored.files;
    json["data_bytes"] = restored.bytes;
    json["elapsed_seconds"] = seconds;
    console.result_json(json);
    return;
  }
  const auto files = static_cast<uint64_t>(restored.files);
  console.say(fmt::format("{}: {}, {}", shell_word(options.output.string()),
                          options.as_published
                              ? count_of(files, "file") + " as the checkpoint has the experts"
                              : count_of(files, "layer file") + " in the loaded layout",
                          pace(restored.bytes, restored.bytes, seconds)));
  const fs::path rank = rank_directory(manifests.front().rank);
  const fs::path first =
      options.as_published || rank == "." ? options.output : options.output / rank;
  console.say_next(fmt::format("mxfp4-repack inspect {}", shell_word(first.string())));
}

}  // namespace

int run_unpack(const UnpackOptions& options, const Console& console) {
  require_local(options.output);
  // Open: read the manifests, and check that the ranks belong together.
  const BlobRanks ranks = open_blob_ranks(options.blob);
  const std::vector<fs::path>& blobs = ranks.directories;
  const std::vector<Manifest>& manifests = ranks.manifests;
  if (const auto other = other_checkpoint(options.blob, manifests.front())) {
    throw Error::input(*other)
        .in_file(options.blob.string())
        .hint("name the blob's own directory to unpack it all the same");
  }
  watch_signals("nothing that was unpacked is left");
  keep_private(describe_manifests(blobs));
  std::optional<BlobSource> published;
  if (options.as_published) {
    published = open_as_published(options);
  } else {
    for (size_t i = 0; i < blobs.size(); ++i) require_restorable(blobs[i], manifests[i]);
  }

  // Open the output: no other process writes there, and all of it appears in one step.
  const int64_t planned =
      published ? published_bytes(*published->source) : restored_bytes(manifests);
  Sibling output(options.output);
  const Seen seen = observe(output, {});
  const Answer& answer = answer_to(seen.there, Asked::kUnpack);
  if (answer.does == Does::kRefuse) throw refusal(answer, seen.named);
  output.reserve(planned);
  if (output.there()) output.clear(/*replaced=*/true);  // of a killed run
  output.make();
  output.require_exchange();
  Progress progress(console, planned);

  // Run: restore every layer of every rank, or every tensor of the checkpoint.
  RestoreResult restored;
  if (published) {
    restored = write_as_published(*published, manifests.front().layout, output.result(),
                                  options.resources, hooks_for(progress));
  } else {
    restored = restore_all(options, blobs, manifests, output.result(), hooks_for(progress));
  }
  progress.finish();

  // Commit: put the new result in DIR.
  const std::string left = output.publish(Sibling::Into::kFree);
  say_summary(console, [&] {
    if (!left.empty()) console.warn(left);
    warn_of_missing_ranks(options.blob, manifests, console);
    report_unpacked(options, restored, manifests, progress.seconds(), console);
  });
  return kOk;
}

}  // namespace mxfp4
