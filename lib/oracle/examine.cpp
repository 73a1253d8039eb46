#include "lib/oracle/examine.hpp"

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

bool holds(const Condition& condition, const Question& question) {
  try {
    return condition.holds(question);
  } catch (const Error&) {
    return false;  // a malformed number in a variable, a name that the rules do not know
  }
}

// The parts of a conjunction.
template <class Use>
void for_each_part(const Condition& condition, Use&& use) {
  if (condition.always_holds) return;
  if (condition.parts == nullptr) return use(condition);
  for (const Condition& part : *condition.parts) for_each_part(part, use);
}

// The backend that a class was tried for: the one whose own key is the step's, if several try it.
std::optional<Backend> backend_of(const RuleSet& rules, const TraceStep& step) {
  std::optional<Backend> backend;
  for (const BackendRow& row : rules.backends) {
    if (std::ranges::find(row.classes, step.candidate) == row.classes.end()) continue;
    const bool own = row.key == step.key.value_or("");
    if (own || !backend) backend = row.backend;
    if (own) break;
  }
  return backend;
}

}  // namespace

std::vector<Candidate> examine_trace(const RuleSet& rules, const Deployment& deployment,
                                     const Decision& decision) {
  Question question = make_question(rules, deployment);
  std::vector<Candidate> candidates;
  for (const TraceStep& step : decision.trace) {
    Candidate& candidate = candidates.emplace_back(Candidate{.step = step});
    const ExpertClass* found = find_class(rules, step.candidate);
    if (found == nullptr) continue;
    candidate.backend = backend_of(rules, step);
    question.key = step.key ? std::optional<std::string_view>(*step.key) : std::nullopt;
    for (const Check& check : found->checks) {
      for_each_part(check.passes, [&](const Condition& part) {
        candidate.conditions.push_back({check.topic, part.text, holds(part, question)});
      });
    }
  }
  return candidates;
}

}  // namespace mxfp4
