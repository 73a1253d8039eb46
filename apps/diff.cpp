// diff: says whether two blobs hold the same tensors in the same layout, or what differs first.
#include <fmt/format.h>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/conversion/compare_blobs.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

Json difference_json(const BlobDifference& difference) {
  return {{"place", text_or_null(difference.place)},
          {"what", difference.what},
          {"first", difference.first},
          {"second", difference.second}};
}

}  // namespace

int run_diff(const DiffOptions& options, const Console& console) {
  // Open: read the manifests of both.
  const BlobRanks first = open_blob_ranks(options.first);
  warn_of_missing_ranks(options.first, first.manifests, console);
  const BlobRanks second = open_blob_ranks(options.second);
  warn_of_missing_ranks(options.second, second.manifests, console);

  const std::optional<BlobDifference> difference = compare_blobs(first, second);
  const bool same = !difference;
  if (console.json()) {
    Json json = json_document("diff");
    json["first"] = options.first.string();
    json["second"] = options.second.string();
    json["same"] = same;
    json["difference"] = same ? Json() : difference_json(*difference);
    console.result_json(std::move(json));
    return same ? kOk : kDifference;
  }
  const std::string both = fmt::format("{} and {}", shell_word(options.first.string()),
                                       shell_word(options.second.string()));
  if (same) {
    console.say(fmt::format("{}: {}: {}", both,
                            console.good("the same layout and bytes by their manifests"),
                            first.manifests.front().layout));
    return kOk;
  }
  const BlobDifference& d = *difference;
  console.result(fmt::format("{} {}: {}{}{}: {}, {}\n", visible(both), console.bad("differ"),
                             visible(d.place), d.place.empty() ? "" : ": ", visible(d.what),
                             visible(d.first), visible(d.second)));
  return kDifference;
}

}  // namespace mxfp4
