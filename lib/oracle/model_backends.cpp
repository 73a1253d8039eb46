#include "lib/oracle/model_backends.hpp"

#include <algorithm>

#include "lib/oracle/question.hpp"

namespace mxfp4 {

const ModelBackendRow* asked_by_model(const Question& question) {
  const Deployment& deployment = question.deployment;
  const auto row = std::ranges::find_if(question.rules.model_backends, [&](const auto& candidate) {
    return candidate.moe_backend == deployment.moe_backend &&
           std::ranges::find(candidate.model_types, deployment.model_type) !=
               candidate.model_types.end() &&
           candidate.when.holds(question);
  });
  return row == question.rules.model_backends.end() ? nullptr : &*row;
}

Decision decide_by_model(const Question& question, const ModelBackendRow& row) {
  Decision decision;
  decision.revision = question.rules.name;
  decision.direct = true;
  TraceStep step;
  step.candidate = row.experts_class;
  step.backend = row.backend;
  const auto missing = std::ranges::find_if_not(
      row.requirements,
      [&](const RequirementRow& requirement) { return requirement.must_hold.holds(question); });
  if (missing == row.requirements.end()) {
    step.supported = true;
    decision.backend = row.backend;
    decision.experts_class = row.experts_class;
    decision.notes.emplace_back("the model's own file takes this kernel: the oracle is not asked");
  } else {
    step.reason = fill_text(missing->refusal.text, question);
    step.needs = missing->must_hold.text;
    decision.error_type = missing->refusal.type;
    decision.error_message = step.reason;
  }
  decision.trace.push_back(std::move(step));
  return decision;
}

std::vector<std::string_view> models_that_ask(const RuleSet& rules, std::string_view moe_backend) {
  std::vector<std::string_view> models;
  for (const ModelBackendRow& row : rules.model_backends) {
    if (row.moe_backend != moe_backend) continue;
    for (const std::string_view model : row.model_types) {
      if (std::ranges::find(models, model) == models.end()) models.push_back(model);
    }
  }
  return models;
}

}  // namespace mxfp4
