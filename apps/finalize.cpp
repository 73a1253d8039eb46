// finalize: the flags, words and exit code for formats/conversion/finalize.
#include "formats/conversion/finalize.hpp"

#include <fmt/format.h>

#include <optional>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"

namespace mxfp4 {
namespace {

// `seconds`: how long the check took; empty if an earlier run had checked.
int report(const FinalizeOptions& options, const Finalized& result, std::optional<double> seconds,
           const Console& console) {
  const std::vector<Manifest>& manifests = result.manifests;
  const bool complete = result.findings.empty();
  if (!result.leftover.empty()) console.warn(result.leftover);
  warn_of_missing_ranks(options.output, manifests, console);
  size_t files = 0;
  for (const Manifest& manifest : manifests) files += manifest.layers.size();
  if (console.json()) {
    Json json = json_document("finalize");
    json["output"] = options.output.string();
    json["complete"] = complete;
    json["num_ranks"] = manifests.size();
    json["num_layer_files"] = files;
    json["stored_bytes"] = stored_bytes(manifests);
    json["elapsed_seconds"] = seconds ? Json(*seconds) : Json();
    json["findings"] = result.findings;
    console.result_json(json);
  } else if (!complete) {
    print_findings(options.output, result.findings, console);
  } else {
    const std::string out = shell_word(options.output.string());
    const int64_t bytes = stored_bytes(manifests);
    console.say(
        fmt::format("{}: complete, {}, {}", out, count_of(files, "layer file"),
                    seconds ? "checked " + pace(bytes, bytes, *seconds) : human_bytes(bytes)));
    console.say_next(
        fmt::format("mxfp4-repack verify {}{}", out,
                    missing_ranks(options.output, manifests).empty() ? "" : " --some-ranks"));
  }
  return complete ? kOk : kDifference;
}

}  // namespace

int run_finalize(const FinalizeOptions& options, const Console& console) {
  std::optional<Progress> progress;
  const Finalized result =
      finalize(options.output, options.resources.threads,
               {.begin = [&](int64_t bytes) { progress.emplace(console, bytes); },
                .progress = [&](int64_t bytes) { progress->advance(bytes); }});
  std::optional<double> seconds;
  if (progress) {
    progress->finish();
    seconds = progress->seconds();
  }
  return report(options, result, seconds, console);
}

}  // namespace mxfp4
