// `explain` for one deployment: what was asked, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstring>

#include "apps/explain_against.hpp"
#include "apps/explain_report.hpp"
#include "apps/known_names.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// Rounding of a size of 1 gives the multiple itself.
LayerDims rounding_multiples(const RuleSet& rules, const Target& target, const CallerRow* caller) {
  const Deployment alone = [&] {
    Deployment deployment;
    deployment.platform = Platform::kOther;
    return deployment;
  }();
  return rank_sizes(rules, alone, caller, target, {1, 1, 1}).padded;
}

void add_sizes(const RuleSet& rules, const ExplainOptions& options, Explanation& e) {
  const Target& target = *e.target;
  e.multiples = rounding_multiples(rules, target, e.caller);
  LayerDims padded;
  if (options.dims) {
    e.sizes = rank_sizes(rules, e.deployment, e.caller, target, *options.dims);
    if (!options.round_sizes) e.sizes->padded = e.sizes->rank;
    padded = e.sizes->padded;
  }
  const W13Order usual =
      target.family == Family::kGptOss ? W13Order::kInterleaved : W13Order::kHalves;
  const DefectFacts facts{target, padded, options.order.value_or(usual)};
  for (std::string& note : defect_notes(rules, facts)) e.decision.notes.push_back(std::move(note));
}

Explanation explain(const RuleSet& rules, const ExplainOptions& options) {
  const ModelConfig* config = options.config ? &*options.config : nullptr;
  Explanation e;
  e.assumed_caller = options.checkpoint.empty() && config == nullptr;
  if (config != nullptr) e.caller = find_caller(rules, *config);
  if (e.assumed_caller) {
    const Selector selector = options.request.selector.value_or(Selector::kGptOss);
    e.caller = usual_caller(rules, selector, options.family);
  }
  e.deployment = resolve_deployment(rules, options.request, e.caller, config);
  e.family = family_of(e.caller, options.family, e.deployment.selector);
  e.decision = decide(rules, {.deployment = e.deployment,
                              .caller = e.caller,
                              .family = options.family,
                              .forced = options.backend,
                              .biases = options.biases,
                              .input_scales = options.input_scales});
  if (!e.decision.backend) return e;
  e.target = make_target(e.deployment, e.decision, e.family);
  e.settings = quant_settings(rules, e.deployment, *e.decision.backend, e.caller, std::nullopt);
  e.layout = find_layout_row(rules, *e.target);
  add_sizes(rules, options, e);
  return e;
}

void write_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error::output("stdout: cannot write");
  }
}

// A name that only the other revision knows is an answer here, not a mistake.
Side explain_there(const RuleSet& rules, const ExplainOptions& options) {
  try {
    return {rules, explain(rules, options)};
  } catch (const Error& error) {
    return {rules, Explanation(), error.what()};
  }
}

int run_against(const RuleSet& rules, const ExplainOptions& options) {
  const Side here = explain_there(rules, options);
  const Side there = explain_there(rules_named(options.against), options);
  if (!here.refused.empty() && !there.refused.empty()) throw Error::input(here.refused);
  const RevisionComparison comparison = compare_revisions(here, there);
  write_stdout(options.json ? comparison_json(here, there, comparison)
                            : comparison_text(here, there, comparison));
  return 0;
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  if (!options.batch.empty()) return run_explain_batch(options);
  const RuleSet& rules = rules_named(options.revision);
  if (!options.against.empty()) return run_against(rules, options);
  const Explanation e = explain(rules, options);
  write_stdout(options.json ? explanation_json(rules, options, e)
                            : explanation_text(rules, options, e));
  for (const std::string& note : e.decision.notes) {
    (void)std::fputs(fmt::format("mxfp4-repack: warning: {}\n", note).c_str(), stderr);
  }
  if (e.decision.backend) return 0;
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

}  // namespace mxfp4
