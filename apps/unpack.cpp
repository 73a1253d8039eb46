// unpack: restores every layer in the loaded layout, without padding.
#include <fmt/format.h>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"
#include "formats/conversion/restore.hpp"
#include "formats/output/inputs_in_output.hpp"
#include "formats/output/unpack_output.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> layer_files(const std::vector<fs::path>& blobs,
                                  const std::vector<Manifest>& manifests) {
  std::vector<fs::path> files;
  for (size_t i = 0; i < blobs.size(); ++i) {
    for (const ManifestLayer& layer : manifests[i].layers) files.push_back(blobs[i] / layer.file);
  }
  return files;
}

// Restores all layers of all ranks into `home`.
RestoreResult restore_all(const UnpackOptions& options, const std::vector<fs::path>& blobs,
                          const std::vector<Manifest>& manifests, const fs::path& home,
                          Progress& progress) {
  const RunHooks hooks{.progress = [&](int64_t bytes) { progress.advance(bytes); },
                       .check_stop = check_interrupted};
  RestoreResult all;
  for (size_t i = 0; i < blobs.size(); ++i) {
    RestoreResult rank = restore_blob(blobs[i], manifests[i],
                                      (home / rank_directory(manifests[i].rank)).lexically_normal(),
                                      options.resources, hooks);
    all.files += rank.files;
    all.bytes += rank.bytes;
    all.lost.merge(rank.lost);
  }
  return all;
}

}  // namespace

int run_unpack(const UnpackOptions& options, const Console& console) {
  // Open: read the manifests, and check that the ranks belong together.
  const auto [blobs, manifests] = open_blob_ranks(options.blob);
  refuse_inputs_in(options.output, blobs);
  refuse_inputs_in(options.output, layer_files(blobs, manifests));
  for (size_t i = 0; i < blobs.size(); ++i) require_restorable(blobs[i], manifests[i]);

  // Open the output: no other process writes there, and an earlier result stays until commit().
  watch_signals("nothing that was unpacked is left");
  const int64_t planned = restored_bytes(manifests);
  UnpackOutput output(options.output, options.force,
                      static_cast<int64_t>(layer_files(blobs, manifests).size()), planned,
                      check_interrupted);
  Progress progress(console, planned);

  // Run: restore every layer of every rank.
  const RestoreResult restored = restore_all(options, blobs, manifests, output.home(), progress);
  progress.finish();

  // Commit: put the new result in DIR, in place of an earlier one.
  const std::string left = output.commit();
  if (!left.empty()) console.warn(left);
  warn_of_missing_ranks(options.blob, manifests, console);
  for (const std::string& text : restored.lost) console.warn(text);
  if (console.json()) {
    Json json = json_document("unpack");
    json["output"] = options.output.string();
    json["num_ranks"] = manifests.size();
    json["num_layer_files"] = restored.files;
    json["data_bytes"] = restored.bytes;
    json["elapsed_seconds"] = progress.seconds();
    console.result_json(json);
  } else {
    const fs::path first = options.output / rank_directory(manifests.front().rank);
    console.say(fmt::format("{}: {} in the loaded layout, {}", shell_word(options.output.string()),
                            count_of(static_cast<uint64_t>(restored.files), "layer file"),
                            pace(restored.bytes, restored.bytes, progress.seconds())));
    console.say_next(
        fmt::format("mxfp4-repack inspect {}", shell_word(first.lexically_normal().string())));
  }
  return kOk;
}

}  // namespace mxfp4
