// `explain` for one deployment: what was asked, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain.hpp"

#include "apps/commands.hpp"
#include "apps/explain_against.hpp"
#include "apps/explain_report.hpp"
#include "apps/known_names.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

// What is the same for all rules.
struct Asked {
  const ExplainOptions& options;
  DeploymentRequest request;       // flags, merged over the --target file
  std::shared_ptr<Source> source;  // null without a checkpoint
};

Asked ask(const ExplainOptions& options, const RuleSet& rules) {
  Asked asked{options, request_from(options.deployment, rules), nullptr};
  if (!options.input.path.empty()) asked.source = open_source(options.input.path);
  return asked;
}

// Rounding of a size of 1 gives the multiple itself.
LayerDims rounding_multiples(const RuleSet& rules, const Target& target, const CallerRow* caller) {
  const Deployment alone = [&] {
    Deployment deployment;
    deployment.platform = Platform::kOther;
    return deployment;
  }();
  return rank_sizes(rules, alone, caller, target, {1, 1, 1}).padded;
}

void add_sizes(const RuleSet& rules, const std::optional<OpenInput>& input, bool round,
               Explanation& e) {
  e.multiples = rounding_multiples(rules, e.target, e.caller);
  LayerDims padded;
  W13Order order = e.family == Family::kGptOss ? W13Order::kInterleaved : W13Order::kHalves;
  if (input) {
    e.sizes = rank_sizes(rules, e.deployment, e.caller, e.target, common_dims(input->model));
    if (!round) e.sizes->padded = e.sizes->rank;
    padded = e.sizes->padded;
    order = input->model.order;
  }
  for (std::string& note : defect_notes(rules, {e.target, padded, order})) {
    e.decision.notes.push_back(std::move(note));
  }
}

int64_t count_ranks(const RuleSet& rules, const ParallelConfig& config) {
  const MoeParallel parallel = flatten_parallel(rules, config);
  return parallel.tp_size * parallel.ep_size;
}

Explanation explain(const RuleSet& rules, const Asked& asked) {
  const DeploymentOptions& flags = asked.options.deployment;
  std::optional<OpenInput> input;
  ModelFacts facts;
  if (asked.source) {
    input = open_input(asked.source, asked.options.input, flags.family, rules);
    facts = facts_of(*input, rules);
  } else {
    facts.family = family_flag(flags.family);
    facts.caller =
        usual_caller(rules, asked.request.selector.value_or(Selector::kGptOss), facts.family);
  }
  Explanation e{choose_backend(flags, rules, asked.request, facts)};
  e.assumed_caller = !input;
  require_rank(flags, count_ranks(rules, e.deployment.parallel));
  if (!e.decision.backend) return e;
  e.settings = quant_settings(rules, e.deployment, *e.decision.backend, e.caller, std::nullopt);
  add_sizes(rules, input, flags.pad == "auto", e);
  return e;
}

void require_answer(const RuleSet& rules, const Explanation& e) {
  if (e.decision.backend) return;
  std::string hint = moe_backend_hint(rules, e.deployment.moe_backend);
  if (hint.empty()) {
    hint = e.deployment.moe_backend == "auto"
               ? "--backend NAME skips the oracle; list backends shows the names"
               : "--moe-backend auto lets the engine choose";
  }
  throw Error::unsupported(e.decision.error_message)
      .reference_type(e.decision.error_type)
      .hint(hint);
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
  console.result(console.json() ? comparison_json(here, there, comparison)
                                : comparison_text(here, there, comparison));
  if (here.error) throw Error(*here.error);
  require_answer(rules, here.explanation);
  return kOk;
}

}  // namespace

int run_explain(const ExplainOptions& options, const Console& console) {
  const RuleSet& rules = rules_for(options.deployment);
  if (!options.batch.empty()) {
    require_useful(options.given, {"--batch", "--revision"}, "with --batch");
    return explain_batch(rules, options.batch, console.verbose() > 0);
  }
  const Asked asked = ask(options, rules);
  if (!options.against.empty()) return explain_against(rules, asked, console);
  const Explanation e = explain(rules, asked);
  console.result(console.json() ? explanation_json(rules, options, e)
                                : explanation_text(rules, options, e));
  for (const std::string& note : e.decision.notes) console.warn(note);
  require_answer(rules, e);
  return kOk;
}

}  // namespace mxfp4
