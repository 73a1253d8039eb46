// fits: says whether an engine of some release, on some machine, would read a blob as it is.
#include "formats/decision/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/fit_words.hpp"
#include "apps/given_facts.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"
#include "formats/decision/given_path.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The command that makes a blob for the deployment that was asked about, of this one: it stands for
// its checkpoint. What was not said is as the blob was made for.
std::string command_for(const FitsOptions& options, const FitQuestion& question,
                        const Manifest& blob) {
  std::string out =
      fmt::format("mxfp4-repack convert {} -o NEW", shell_word(options.blob.string()));
  for (const GivenFlag& flag : options.given) {
    if (flag.name == "OUT") continue;
    if (flag.values.empty()) out += " " + flag.name;
    for (const std::string& value : flag.values) {
      out += fmt::format(" {} {}", flag.name, shell_word(value));
    }
  }
  const DeploymentFacts& facts = question.facts;
  if (!facts.arch && !blob.target.arch.empty()) out += " --arch " + blob.target.arch;
  if (options.deployment.revision.empty() && !options.deployment.target_file.facts().engine_version)
    out += " --revision " + question.release;
  for_each_parallel_fact([&](const FactRow& row, auto members) {
    const auto& made_for = blob.parallel.*members.known;
    if ((facts.*members.given).has_value() || made_for == ParallelConfig{}.*members.known) return;
    out +=
        row.is_switch() ? fmt::format(" {}", row.flag) : fmt::format(" {} {}", row.flag, made_for);
  });
  return out;
}

}  // namespace

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
    append_wrapped(out, "  next     ", 11, command_for(options, question, blob.manifests.front()));
  }
  console.result(out);
  return exit_code_of(answer.fit);
}

}  // namespace mxfp4
