// fits: says whether an engine of some release, on some machine, would read a blob as it is.
#include "formats/decision/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/fit_words.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"
#include "apps/told_facts.hpp"
#include "formats/decision/given_path.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

int run_fits(const FitsOptions& options, const Console& console) {
  // Open: the manifests of all ranks.
  const BlobRanks blob = open_blob_ranks(options.blob);
  warn_of_missing_ranks(options.blob, blob.manifests, console);

  // Ask: the facts of the serving machine, as far as flags and the --target file tell them.
  const FitQuestion question = fit_question(options.deployment, blob.manifests.front());
  const Fits answer = fits(question, blob.manifests);

  // Show the answer, and end with its code.
  if (console.json()) {
    Json json = json_document("fits");
    json["blob"] = options.blob.string();
    json["revision"] = question.release;
    json["fits"] = answer.fit == Fit::kNotKnown ? Json() : Json(answer.fit == Fit::kYes);
    json["differs"] = answer.differs;
    json["reasons"] = answer.reasons;
    console.result_json(std::move(json));
    return exit_code_of(answer.fit);
  }
  std::string out;
  append_wrapped(out, "", 2,
                 fmt::format("{}: {}", shell_word(options.blob.string()),
                             fit_words(answer.fit, question.release)));
  for (const std::string& reason : answer.reasons) append_wrapped(out, "  because  ", 11, reason);
  for (const std::string& fact : answer.differs) append_wrapped(out, "  differs  ", 11, fact);
  if (answer.fit == Fit::kNo) {
    append_wrapped(out, "  next     ", 11,
                   "mxfp4-repack convert INPUT -o NEW, with the flags of that deployment");
  }
  console.result(out);
  return exit_code_of(answer.fit);
}

}  // namespace mxfp4
