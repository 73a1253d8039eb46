// verify: checks checksums, sizes, index and manifest; with --against, makes every byte again and
// compares it.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <utility>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/request.hpp"
#include "apps/serve_line.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/gather.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/conversion/compare.hpp"
#include "formats/conversion/model_directory.hpp"
#include "formats/conversion/source_sample.hpp"
#include "formats/decision/contents.hpp"
#include "formats/decision/plan_of_manifest.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

void append(Findings& findings, Findings more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

// Checks everything in one rank's directory, and in `model` around it unless that is empty.
// `source` is null without --against. Bytes are compared with it only if no other check found a
// difference.
Findings verify_blob(const std::shared_ptr<Source>& source, const fs::path& directory,
                     const fs::path& model, const Manifest& manifest, const VerifyOptions& options,
                     Progress& progress) {
  Findings findings;
  if (!model.empty()) findings = check_rest_files(model, manifest, /*sums=*/true, options.from);
  append(findings, check_blob_files(directory, manifest));
  append(findings, check_layer_files(
                       directory, manifest, options.resources.threads,
                       [&](int64_t bytes) { progress.advance(bytes); }, options.from));
  if (findings.empty() && source != nullptr && !manifest.layers.empty()) {
    const CheckpointOptions input =
        request_from(options.against, default_revision(), std::nullopt).checkpoint;
    ManifestPlan made = plan_of_manifest(source, input, directory, manifest);
    append(findings, std::move(made.findings));
    if (!findings.empty()) return findings;
    append(findings,
           compare_with_checkpoint(made, directory, manifest, options.resources,
                                   {.progress = [&](int64_t bytes) { progress.advance(bytes); }}));
    if (!model.empty()) append(findings, compare_rest(made.input, model, manifest, {}));
  }
  return findings;
}

// Whether files belong to the blob that lie around it, and are not there: it was taken out of its
// model directory.
bool stands_alone(const fs::path& model, const std::vector<Manifest>& manifests) {
  return model.empty() && !manifests.empty() && !manifests.front().rest.empty();
}

// Bytes for the progress bar: all that are stored, and with --against all decoded ones, made again.
int64_t bytes_to_read(const std::vector<Manifest>& manifests, const VerifyOptions& options) {
  const int64_t stored = stored_bytes(manifests);
  return options.against.path.empty() ? stored : stored + data_bytes(manifests);
}

// Lets the page cache go of manifest and index, which are read through it.
void forget_small_files(const fs::path& blob) {
  for (const auto& name : {kManifestName, kIndexName}) {
    try {
      (void)open_past_cache(blob / name);
    } catch (const Error&) {
      // Not there, or not readable: reading it says so.
    }
  }
}

// Reads the manifests of all ranks. A damaged manifest becomes a finding, and its rank is left out.
// `hint`: of the last damaged one.
void open_ranks(const fs::path& path, ReadFrom from, std::vector<fs::path>& ranks,
                std::vector<Manifest>& manifests, Findings& findings, std::string& hint) {
  for (const fs::path& blob : require_blobs(path)) {
    if (from == ReadFrom::kDevice) forget_small_files(blob);
    try {
      manifests.push_back(read_manifest(blob));
      ranks.push_back(blob);
    } catch (const Error& error) {
      if (error.is_unreadable()) throw;
      findings.emplace_back(error.what());
      hint = error.hint_text();
    }
  }
}

// What to do about differences. `source` is null without --against.
std::string next_after_differences(const std::vector<Manifest>& manifests, Source* source) {
  if (source != nullptr) {
    if (const auto differs = checkpoint_difference(manifests.front(), *source)) {
      return fmt::format("--against the checkpoint that the blob was made from: {}", *differs);
    }
  }
  return kMendBlob;
}

// `next`: what to do, if it is known already.
int report(const VerifyOptions& options, const fs::path& model,
           const std::vector<Manifest>& manifests, const Findings& findings, Source* source,
           std::string next, double seconds, const Console& console) {
  size_t layers = 0;
  for (const Manifest& manifest : manifests) layers += manifest.layers.size();
  if (console.json()) {
    Json json = json_document("verify");
    json["blob"] = options.blob.string();
    json["against"] = text_or_null(options.against.path.string());
    json["holds"] = findings.empty();
    json["num_ranks"] = manifests.size();
    json["num_layer_files"] = layers;
    json["stored_bytes"] = stored_bytes(manifests);
    json["elapsed_seconds"] = seconds;
    json["findings"] = findings;
    console.result_json(json);
  } else if (findings.empty()) {
    const std::string out = shell_word(options.blob.string());
    const std::string against = options.against.path.string();
    console.say(fmt::format(
        "{}: {}, {}, {}{}", out, console.good("ok"), count_of(layers, "layer file"),
        pace(stored_bytes(manifests), bytes_to_read(manifests, options), seconds),
        against.empty() ? ""
                        : fmt::format(", every byte {}is the repack of {}",
                                      stands_alone(model, manifests) ? "of the experts " : "",
                                      shell_word(against))));
    const fs::path served =
        source == nullptr ? fs::path() : model_to_serve(*source, options.against.path);
    say_serve(serve_line(manifests.front(), options.blob, served), console);
    if (against.empty()) {
      console.say_next(fmt::format("mxfp4-repack verify {} --against INPUT", out));
    }
  } else {
    print_findings(options.blob, findings, console);
    if (next.empty() && layers > 0) {
      next = next_after_differences(manifests, source);
    }
    if (!next.empty()) console.say_next(next);
  }
  return findings.empty() ? kOk : kDifference;
}

}  // namespace

int run_verify(const VerifyOptions& options, const Console& console) {
  // Open: read one manifest a rank. A damaged manifest is a finding, not an error.
  Findings findings;
  std::vector<fs::path> ranks;
  std::vector<Manifest> manifests;
  std::string next;
  open_ranks(options.blob, options.from, ranks, manifests, findings, next);
  // Open the source before there are threads: it may be read in a child process
  // (child_process.hpp).
  std::shared_ptr<Source> source;
  const fs::path& against = options.against.path;
  if (!against.empty()) source = open_source(against);
  if (source != nullptr && source->kind() == kBlobKind) {
    throw Error::input("a blob, not the checkpoint that one was made from")
        .in_file(against.string())
        .hint(fmt::format("mxfp4-repack diff {} {} compares two blobs",
                          shell_word(options.blob.string()), shell_word(against.string())));
  }

  // Check that the ranks belong together, and that every file and byte is as its manifest says. A
  // difference does not end the check.
  Progress progress(console, bytes_to_read(manifests, options));
  append(findings, check_ranks(ranks, manifests));
  if (findings.empty()) gather(findings, [&] { check_blob_source(options.blob, manifests); });
  if (!manifests.empty()) {
    if (auto other = other_checkpoint(options.blob, manifests.front())) {
      findings.push_back(std::move(*other));
      next = fmt::format("mxfp4-repack convert {} -o NEW makes a blob of that checkpoint",
                         shell_word(options.blob.string()));
    }
  }
  const fs::path model =
      ranks.empty() ? fs::path() : model_directory_of(options.blob, ranks.front());
  for (size_t i = 0; i < ranks.size(); ++i) {
    // All ranks share the model directory.
    append(findings, verify_blob(source, ranks[i], i == 0 ? model : fs::path(), manifests[i],
                                 options, progress));
  }
  progress.finish();

  // Report, unless a file became shorter meanwhile: then its bytes were read as zeros.
  if (options.some_ranks) {
    warn_of_missing_ranks(options.blob, manifests, console);
  } else if (std::string missing = missing_ranks(options.blob, manifests); !missing.empty()) {
    console.note("--some-ranks accepts that ranks are missing");
    if (findings.empty()) {
      next =
          "convert again, with --resume and the same flags but without --rank: it makes those "
          "ranks";
    }
    findings.push_back(std::move(missing));
  }
  return report(options, model, manifests, findings, source.get(), std::move(next),
                progress.seconds(), console);
}

}  // namespace mxfp4
