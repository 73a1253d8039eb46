#include "apps/fit_words.hpp"

#include <fmt/format.h>

#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob) {
  FitQuestion question;
  const DeploymentFacts& target = flags.target_file.facts();
  const std::string usual = target.engine_version.value_or(blob.revision);
  const bool given = !flags.revision.empty() || !engine_fits(flags.engine, usual);
  question.release = given ? revision_of_engine(flags.engine, flags.revision) : usual;
  if (!is_newer_release(question.release)) {
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
