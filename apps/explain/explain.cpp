// `explain` for one deployment: shows the question, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "apps/commands.hpp"
#include "apps/explain/explain_against.hpp"
#include "apps/explain/explain_next.hpp"
#include "apps/explain/explain_report.hpp"
#include "apps/explain/explain_side.hpp"
#include "apps/given_facts.hpp"
#include "apps/known_names.hpp"
#include "apps/request.hpp"
#include "apps/serve_line.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/decision/config_only.hpp"
#include "formats/decision/given_path.hpp"
#include "formats/decision/request_json.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// Weights, or where there are none only the config.
std::shared_ptr<Source> open_input(const CheckpointOptions& input) {
  if (input.path.empty()) return open_config(*input.config_text, input.config_path);
  std::optional<int64_t> layer;
  std::error_code ignored;
  const bool whole =
      input.path.filename() == kConfigName || std::filesystem::is_directory(input.path, ignored);
  const std::filesystem::path path = whole ? whole_of(input.path, layer) : input.path;
  const auto config = config_without_weights(path);
  if (!config) return open_source(path);
  return open_config(input.config_text.value_or(read_text_file(*config, kMaxConfigBytes)), *config);
}

Explanation explain(const ConversionRequest& request, ExplainCall& call) {
  const RequestFlags& flags = call.options.deployment;
  const RuleSet& rules = *request.rules;
  std::optional<OpenedCheckpoint> checkpoint;
  if (!call.options.input.path.empty() || !call.options.input.model_config.empty()) {
    const CheckpointOptions input = checkpoint_from(call.options.input, request.family);
    if (!call.source) call.source = open_input(input);
    checkpoint = open_checkpoint(call.source, input, rules);
  }
  const OpenedCheckpoint* input = checkpoint ? &*checkpoint : nullptr;
  Explanation e{conversion_for(flags, request, input)};
  e.assumed_caller = !checkpoint;
  if (checkpoint) {
    e.imagined = checkpoint->imagined;
    e.warnings = checkpoint->model.warnings;
  }
  if (call.options.against.empty()) {
    e.candidates = examine_trace(rules, e.deployment, e.decision);
    e.next = next_command(call.options, input != nullptr, e);
    e.start = start_source(e, e.imagined ? nullptr : call.source.get());
    // A forced backend is not what the engine chooses, whatever it is told.
    if (e.start && !request.backend) {
      const std::string asked =
          request_text(request, checkpoint_from(call.options.input, request.family).style);
      e.start->serve = serve_line({.engine = rules.engine, .asked = asked, .model = e.next.input});
    }
  }
  if (!e.decision.backend) return e;
  e.settings = kernel_settings(rules, e.deployment, *e.decision.backend, e.caller, std::nullopt);
  e.multiples = rounding_multiples(rules, e.caller, e.target);
  return e;
}

// The rules that --against names, oldest first for "all"; a bare number is a release of the engine
// that is asked.
std::vector<const RuleSet*> rules_against(const RuleSet& rules, const std::string& names) {
  std::vector<const RuleSet*> found;
  if (names == "all") {
    for (const Release* release : releases_of(rules.engine)) {
      if (const RuleSet& other = rules_of(*release); &other != &rules) found.push_back(&other);
    }
    return found;
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    const bool number =
        !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
    if (name.empty()) throw Error::usage("--against: a release has no name");
    found.push_back(&rules_named(
        number ? revision_of_engine(std::string(engine_name(rules.engine)), name) : name));
    begin = end + 1;
  }
  return found;
}

// The exit code is the one of explain without --against.
int explain_against(const RuleSet& rules, ExplainCall& call, const Console& console) {
  const Side here = explain_side(rules, call);
  std::vector<Side> others;
  for (const RuleSet* other : rules_against(rules, call.options.against)) {
    others.push_back(explain_side(*other, call));
  }
  const bool answered =
      !here.error || std::ranges::any_of(others, [](const Side& side) { return !side.error; });
  if (!answered) throw Error(*here.error);
  report_given_facts(call.options.deployment, rules, console);
  report_assumed_rules(call.options.deployment, rules, console);
  if (console.json()) {
    console.result_json(comparison_json(here, others));
  } else if (others.size() == 1) {
    console.result(comparison_text(here, others.front()));
  } else {
    console.result(comparison_table(console, here, others));
  }
  if (here.error) throw Error(*here.error);
  require_conversion(here.explanation);
  return kOk;
}

}  // namespace

Side explain_side(const RuleSet& rules, ExplainCall& call) {
  try {
    return {rules, explain(request_from(call.options.deployment, rules), call)};
  } catch (const Error& error) {
    return {rules, Explanation(), error};
  }
}

int run_explain(const ExplainOptions& options, const Console& console) {
  // Ask: find the rules.
  const RuleSet& rules = rules_for(options.deployment);
  if (!options.batch.empty()) {
    require_useful(options.given, {"--batch", "--engine", "--revision"}, "with --batch");
    if (rules.selectors.empty()) {
      throw Error::usage(
          fmt::format("--batch: {} chooses by a checkpoint's config, which a line lacks",
                      engine_title(rules.engine)))
          .hint("explain CHECKPOINT answers for one deployment");
    }
    report_assumed_rules(options.deployment, rules, console);
    return explain_batch(rules, options.batch, console.verbose() > 0);
  }
  ExplainCall call{options};
  if (!options.against.empty()) return explain_against(rules, call, console);

  // Look up the flags before the input is opened, so that errors come in the same order as in
  // convert.
  const ConversionRequest request = request_from(options.deployment, rules);
  report_given_facts(options.deployment, rules, console);

  // Open and decide as convert does; without a checkpoint, assume the usual method class.
  Explanation e = explain(request, call);
  // The hint to ask explain would not help here: this is explain, and it shows the candidates.
  if (e.refusal && e.refusal->hint_text() == kExplainHint) e.refusal->hint("");
  report_given_versions(options.deployment, e, console);
  report_assumed_rules(options.deployment, rules, console);
  for (const std::string& warning : e.warnings) console.warn(warning);
  if (console.json()) {
    console.result_json(explanation_json(rules, options, e));
  } else {
    console.result(explanation_text(console, rules, options, e));
  }

  // End as convert would, with the same exit code and words.
  require_conversion(e);
  return kOk;
}

}  // namespace mxfp4
