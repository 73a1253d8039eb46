// `explain` for one deployment: what was asked, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain.hpp"

#include "apps/commands.hpp"
#include "apps/explain_against.hpp"
#include "apps/explain_report.hpp"
#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The hint where the oracle refuses.
constexpr std::string_view kOtherwise =
    "--backend NAME skips the oracle; list backends shows the names";

// What is the same for all rules.
struct Asked {
  const ExplainOptions& options;
  std::shared_ptr<Source> source;  // null without a checkpoint
};

Explanation explain(const RuleSet& rules, const Asked& asked) {
  const RequestFlags& flags = asked.options.deployment;
  const ConversionRequest request = request_from(flags, rules);
  std::optional<OpenedCheckpoint> checkpoint;
  if (asked.source) {
    checkpoint =
        open_checkpoint(asked.source, checkpoint_from(asked.options.input, request.family), rules);
  }
  const OpenedCheckpoint* input = checkpoint ? &*checkpoint : nullptr;
  Explanation e{conversion_for(flags, request, input, kOtherwise)};
  e.assumed_caller = !checkpoint;
  e.next = next_command(asked.options, request, input, e);
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
  const Asked asked{options,
                    options.input.path.empty() ? nullptr : open_source(options.input.path)};
  if (!options.against.empty()) return explain_against(rules, asked, console);
  const Explanation e = explain(rules, asked);
  if (!console.json()) console.result(explanation_text(rules, options, e));
  for (const std::string& note : e.decision.notes) console.warn(note);
  if (!e.refusal) {
    for (const std::string& defect : e.defects) console.warn(defect);
  }
  if (console.json()) console.result_json(explanation_json(rules, options, e));
  require_conversion(e);
  return kOk;
}

}  // namespace mxfp4
