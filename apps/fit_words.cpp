#include "apps/fit_words.hpp"

#include <fmt/format.h>

#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob) {
  FitQuestion question;
  question.release = flags.revision;
  const DeploymentFacts& target = flags.target_file.facts();
  if (question.release.empty()) question.release = target.engine_version.value_or(blob.revision);
  if (!is_newer_release(question.release)) {
    question.rules =
        &(flags.revision.empty() && target.engine_version ? rules_of_engine(question.release)
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
  return fmt::format("not known for {}: proven at the first start", release);
}

}  // namespace mxfp4
