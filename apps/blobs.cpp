#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/request.hpp"
#include "apps/text_layout.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/conversion/source_sample.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/visible.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
std::optional<std::string> other_checkpoint(const std::filesystem::path& path,
                                            const Manifest& manifest) {
  if (!is_folder_at(path / kBlobFolder)) return std::nullopt;
  std::unique_ptr<Source> source;
  try {
    source = open_source(path);
  } catch (const Error&) {
    return std::nullopt;  // no checkpoint
  }
  if (source->kind() == kBlobKind) return std::nullopt;
  const auto differs = checkpoint_difference(manifest, *source);
  if (!differs) return std::nullopt;
  return fmt::format("the checkpoint around the blob is not the one that it was made from: {}",
                     *differs);
}

FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob) {
  FitQuestion question;
  question.release = release_of(flags, blob);
  question.rules = &rules_for(flags, blob);
  if (!is_newer_release(question.release)) question.release = question.rules->name;
  question.facts = request_from(flags, *question.rules, std::nullopt).request.deployment;
  return question;
}

ExitCode exit_code_of(Fit fit) {
  return fit == Fit::kYes ? kOk : fit == Fit::kNo ? kDifference : kNotKnown;
}

void print_findings(const std::filesystem::path& path, const std::vector<std::string>& findings,
                    const Console& console) {
  for (const std::string& finding : findings) console.result(visible(finding) + "\n");
  console.result(fmt::format("{}: {}\n", visible(path.string()),
                             console.bad(count_of(findings.size(), "difference"))));
}

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

}  // namespace mxfp4
