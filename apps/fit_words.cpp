#include "apps/fit_words.hpp"

#include <fmt/format.h>

#include "apps/request.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob) {
  FitQuestion question;
  question.release = release_of(flags, blob);
  question.rules = &rules_for(flags, blob);
  if (!is_newer_release(question.release)) question.release = question.rules->name;
  question.facts = request_from(flags, *question.rules, std::nullopt).request.deployment;
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
