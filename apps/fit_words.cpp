#include "apps/fit_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "apps/given_facts.hpp"
#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

namespace {

// Whether no rules can be known of the release: it is newer than all, or, by a probe's file or with
// more than a number in its name ("0.33.0rc1"), a build between the known ones. What else is
// unknown is a slip of the finger.
bool has_no_rules(const std::string& name, bool typed) {
  if (is_newer_release(name)) return true;
  if (find_release(name) != nullptr) return false;
  const size_t number = name.find_first_of("0123456789");
  const std::string prefix = name.substr(0, number);
  if (number == std::string::npos || (!prefix.empty() && prefix != "v" && !prefix.ends_with('-')))
    return false;
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  return !typed ||
         std::any_of(name.begin() + static_cast<std::ptrdiff_t>(number), name.end(), letter);
}

}  // namespace

FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob) {
  FitQuestion question;
  const DeploymentFacts& target = flags.target_file.facts();
  const std::string usual = target.engine_version.value_or(blob.revision);
  const bool given = !flags.revision.empty() || !engine_fits(flags.engine, usual);
  question.release = given ? revision_of_engine(flags.engine, flags.revision) : usual;
  // The blob may name the same release in full.
  if (blob.revision.ends_with("-" + question.release)) question.release = blob.revision;
  if (!has_no_rules(question.release, /*typed=*/given)) {
    question.rules = &(!given && target.engine_version ? rules_of_engine(question.release)
                                                       : rules_named(question.release));
    question.release = question.rules->name;
  }
  const RuleSet& names = question.rules != nullptr ? *question.rules : default_revision();
  question.facts = deployment_from(flags, names);
  return question;
}

ExitCode exit_code_of(Fit fit) {
  switch (fit) {
    case Fit::kYes:
      return kOk;
    case Fit::kNo:
      return kDifference;
    case Fit::kNotKnown:
      break;
  }
  return kNotKnown;
}

std::string fit_words(Fit fit, const std::string& release) {
  switch (fit) {
    case Fit::kYes:
      return fmt::format("yes, it fits {}", release);
    case Fit::kNo:
      return fmt::format("no, it does not fit {}", release);
    case Fit::kNotKnown:
      break;
  }
  const bool proven = engine_of_revision(release) == Engine::kVllm;  // by the plug-in
  return fmt::format("not known for {}{}", release, proven ? ": proven at the first start" : "");
}

}  // namespace mxfp4
