// fits: says whether an engine of some release, on some machine, would read a blob as it is.
#include "formats/decision/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/screen.hpp"
#include "apps/text_layout.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/output/given_path.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

// Whether convert takes the blob in place of its checkpoint: the blob says how its checkpoint names
// the experts, and its layout loses nothing.
bool stands_for_checkpoint(const std::filesystem::path& blob) {
  try {
    return open_source(blob) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// The members that were typed, and of those that the blob was asked with what they leave open.
json over_asked(const RequestFlags& typed, const FitQuestion& question, const Manifest& blob,
                const Fits& answer) {
  json members = typed.members;
  if (!members.contains("revision") && !typed.target.facts.engine_version) {
    members["revision"] = question.release;
  }
  const bool other_machine = question.facts.arch || question.facts.platform;
  const std::vector<std::string> variables = typed.variables();
  const json asked = json::parse(blob.asked);
  for (const auto& [key, value] : asked.items()) {
    const bool of_machine = key == "arch" || key == "platform";
    const bool of_backend = key == "backend" || key == "moe_backend";
    const bool of_packages = key == "libs" || key == "no_lib";
    if (of_packages && !typed.target.path.empty()) continue;  // the file says it
    if ((of_machine && other_machine) || (of_backend && !answer.takes_backend)) continue;
    if (key != "env") {
      members.emplace(key, value);  // unless it was typed
      continue;
    }
    for (const auto& [name, text] : value.items()) {
      if (std::ranges::find(variables, name) != variables.end()) continue;
      members["env"].push_back(fmt::format("{}={}", name, text.get<std::string>()));
    }
  }
  return members;
}

// What to do about a blob that does not fit: the parts of the command that makes one for the
// deployment that was asked about, of this one if it can stand for its checkpoint. What was not
// said is as the blob was made for.
std::vector<std::string> next_step(const FitsOptions& options, const FitQuestion& question,
                                   const Manifest& blob, const Fits& answer) {
  if (answer.fit != Fit::kNo) return {};
  if (answer.damaged) return {kMendBlob};
  const bool enough = stands_for_checkpoint(options.input.path);
  std::vector<std::string> parts{
      fmt::format("mxfp4-repack convert {} -o NEW",
                  enough ? shell_word(options.input.path.string()) : "CHECKPOINT")};
  RequestFlags flags = options.input;
  if (!enough) {
    flags.members = over_asked(options.input, question, blob, answer);
  } else if (!answer.takes_backend && !flags.members.contains("moe_backend")) {
    flags.members["moe_backend"] = "auto";  // convert takes the rest from the blob
  }
  std::ranges::move(flags.typed(), std::back_inserter(parts));
  return parts;
}

}  // namespace

int run_fits(const FitsOptions& options, const Console& console) {
  // Open: the manifests of all ranks.
  const BlobRanks blob = open_blob_ranks(options.input.path);
  if (options.input.given.size() < 2) {
    throw Error::usage("fits: nothing differs from the blob's own deployment")
        .hint("--revision NAME or --target FILE says for what");
  }
  warn_of_missing_ranks(options.input.path, blob.manifests, console);

  // Ask: the facts of the serving machine, as far as flags and the --target file tell them.
  const FitQuestion question = fit_question(options.input, blob.manifests.front());
  Fits answer = fits(question, blob);
  if (const auto other = other_checkpoint(options.input.path, blob.manifests.front())) {
    answer.fit = Fit::kNo;
    answer.reasons.insert(answer.reasons.begin(), *other);
  }
  const std::vector<std::string> next =
      next_step(options, question, blob.manifests.front(), answer);

  // Show the answer, and end with its code.
  Json json = json_document("fits");
  json["blob"] = options.input.path.string();
  json["revision"] = question.release;
  json["fits"] = answer.fit == Fit::kNotKnown ? Json() : Json(answer.fit == Fit::kYes);
  json["differs"] = answer.differs;
  json["reasons"] = answer.reasons;
  json["next"] = text_or_null(fmt::format("{}", fmt::join(next, " ")));
  if (console.json()) {
    console.result_json(std::move(json));
    return exit_code_of(answer.fit);
  }
  std::string out;
  const char* words = answer.fit == Fit::kYes  ? "{}: yes, it fits {}"
                      : answer.fit == Fit::kNo ? "{}: no, it does not fit {}"
                                               : "{}: not known for {}: proven at the first start";
  append_wrapped(
      out, "", 2,
      fmt::format(fmt::runtime(words), shell_word(options.input.path.string()), question.release));
  out += fields_text(console, {{"because", json["reasons"]}, {"differs", json["differs"]}}, 2);
  if (!next.empty()) append_command(out, "  next     ", 13, next);
  // Nothing goes wrong with a yes, so --quiet leaves it out.
  if (answer.fit == Fit::kYes) {
    console.say_lines(out);
  } else {
    console.result(out);
  }
  return exit_code_of(answer.fit);
}

}  // namespace mxfp4
