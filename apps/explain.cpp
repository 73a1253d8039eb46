// `explain` for one deployment: what was asked, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain.hpp"

#include <algorithm>

#include "apps/commands.hpp"
#include "apps/explain_against.hpp"
#include "apps/explain_next.hpp"
#include "apps/explain_report.hpp"
#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "apps/told_facts.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// What is the same for all rules.
struct Asked {
  const ExplainOptions& options;
  std::shared_ptr<Source> source;  // null without a checkpoint
};

// The backend that a class was tried for: one with its own key, if several try the class.
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

std::vector<Candidate> examine(const Asker& asker, const Decision& decision) {
  std::vector<Candidate> candidates;
  for (const TraceStep& step : decision.trace) {
    Candidate candidate{.step = step};
    if (find_class(asker.rules, step.candidate) != nullptr) {
      candidate.backend = backend_of(asker.rules, step);
      candidate.conditions = examine_class(asker, step.candidate, step.key);
      if (!step.supported) candidate.needs = class_needs(asker, step.candidate, step.key);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

Explanation explain(const RuleSet& rules, const Asked& asked) {
  const RequestFlags& flags = asked.options.deployment;
  const ConversionRequest request = request_from(flags, rules);
  std::optional<OpenedCheckpoint> checkpoint;
  if (asked.source) {
    checkpoint =
        open_checkpoint(asked.source, checkpoint_from(asked.options.input, request.family), rules);
  }
  const OpenedCheckpoint* input = checkpoint ? &*checkpoint : nullptr;
  Explanation e{conversion_for(flags, request, input)};
  e.assumed_caller = !checkpoint;
  if (asked.options.against.empty()) {
    e.candidates = examine(asker_of(request, e, input), e.decision);
    if (asked.options.all) e.alternatives = find_alternatives(request, e, input);
    e.next = next_command(asked.options, request, input, e);
  }
  if (!e.decision.backend) return e;
  e.settings = kernel_settings(rules, e.deployment, *e.decision.backend, e.caller, std::nullopt);
  e.multiples = rounding_multiples(rules, e.caller, e.target);
  return e;
}

// A name that only the other revision knows is an answer here, not a mistake.
Side explain_side(const RuleSet& rules, const Asked& asked) {
  try {
    return {rules, explain(rules, asked)};
  } catch (const Error& error) {
    return {rules, Explanation(), error};
  }
}

// Ends as it would without the comparison.
int explain_against(const RuleSet& rules, const Asked& asked, const Console& console) {
  const Side here = explain_side(rules, asked);
  const Side there = explain_side(rules_named(asked.options.against), asked);
  if (here.error && there.error) throw Error(*here.error);
  const RevisionComparison comparison = compare_revisions(here, there);
  if (console.json()) {
    console.result_json(comparison_json(here, there, comparison));
  } else {
    console.result(comparison_text(here, there, comparison));
  }
  if (here.error) throw Error(*here.error);
  require_conversion(here.explanation);
  return kOk;
}

}  // namespace

int run_explain(const ExplainOptions& options, const Console& console) {
  const RuleSet& rules = rules_for(options.deployment);
  if (!options.batch.empty()) {
    require_useful(options.given, {"--batch", "--revision"}, "with --batch");
    return explain_batch(rules, options.batch, console.verbose() > 0);
  }
  report_told_facts(options.deployment, rules, console);
  const Asked asked{options,
                    options.input.path.empty() ? nullptr : open_source(options.input.path)};
  if (!options.against.empty()) return explain_against(rules, asked, console);
  const Explanation e = explain(rules, asked);
  if (console.json()) {
    console.result_json(explanation_json(rules, options, e));
  } else {
    console.result(explanation_text(rules, options, e));
  }
  require_conversion(e);
  return kOk;
}

}  // namespace mxfp4
