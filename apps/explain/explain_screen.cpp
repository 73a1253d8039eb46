// The text of `explain`: the answer, the reasons, the other backends, and what to type next.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/explain/explain_report.hpp"
#include "apps/given_facts.hpp"
#include "apps/text_layout.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/parallel_text.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kLabelColumn = 18;
constexpr size_t kBackendColumn = 33;  // behind the longest name of a backend

std::string label(std::string_view text, size_t column = kLabelColumn) {
  return fmt::format("  {:<{}}", text, column - 2);
}

void append_field(std::string& out, std::string_view name, std::string_view text) {
  append_wrapped(out, label(name), kLabelColumn, text);
}

std::string packages_text(const RuleSet& rules, const Deployment& d) {
  std::string text = d.libs.empty() ? "none" : fmt::format("{}", fmt::join(d.libs, " "));
  const auto stock = std::ranges::find(rules.stock_packages, d.platform, &StockRow::platform);
  if (stock != rules.stock_packages.end() &&
      d.libs == std::set<std::string>(stock->packages.begin(), stock->packages.end())) {
    text += " (stock)";
  }
  return text;
}

// The parallel sizes, and the switches that conditions depend on.
std::string parallelism_text(const ParallelConfig& p) {
  std::string text = parallel_text(p);
  if (p.enable_expert_parallel && p.dp_size > 1) text += ", all-to-all " + p.all2all_backend;
  for_each_fact_of<ParallelConfig>(
      [&]<class Value, class Owner>(const FactRow& row, FactMembers<Value, Owner> members) {
        if constexpr (std::is_same_v<Value, bool>) {
          if (!row.words.empty() && p.*members.known) text += fmt::format(", {}", row.words);
        }
      });
  return text;
}

// Appends the facts that a person should check: assumptions, and how the flags were understood.
void append_asked(std::string& out, const RuleSet& rules, const ExplainOptions& options,
                  const Explanation& e, bool verbose) {
  const Deployment& d = e.deployment;
  if (e.caller != nullptr && e.assumed_caller) {
    append_field(out, "as if served by", e.caller->text);
  }
  const std::string given = machine_as_given(options.deployment);
  append_field(out, "machine",
               fmt::format("{} {}{}", platform_name(d.platform), d.arch,
                           given.empty() ? "" : fmt::format(" ({})", given)));
  append_field(out, "packages", packages_text(rules, d));
  const std::string parallel = parallelism_text(d.parallel);
  if (verbose || parallel != parallel_text({})) append_field(out, "parallel", parallel);
}

// Appends all facts that the decision depends on.
void append_all_asked(std::string& out, const RuleSet& rules, const ExplainOptions& options,
                      const Explanation& e) {
  const Deployment& d = e.deployment;
  append_field(out, "rules",
               rules.commit.empty() ? std::string(rules.name)
                                    : fmt::format("{} ({} {})", rules.name,
                                                  engine_title(rules.engine), rules.commit));
  if (!options.input.path.empty()) append_field(out, "checkpoint", options.input.path.string());
  if (e.caller != nullptr && !e.assumed_caller) {
    append_field(out, "served by", fmt::format("{} ({})", e.caller->method, e.caller->text));
  }
  append_field(out, "moe_backend", d.moe_backend);
  append_field(
      out, "selector",
      fmt::format("{}, {} converter", e.decision.direct ? "not asked" : selector_name(d.selector),
                  family_name(e.family)));
  append_field(out, "activation", fmt::format("{}, routing {}", d.activation, d.routing_method));
  if (d.model_activation) append_field(out, "checkpoint key", *d.model_activation);
  if (d.activation_override) append_field(out, "override key", *d.activation_override);
  if (d.lora) append_field(out, "LoRA", "enabled");
  for (const auto& [name, value] : d.env)
    append_field(out, "env", fmt::format("{}={}", name, value));
}

// "MarlinExperts (MARLIN) with mxfp8 activations"
std::string candidate_text(const Candidate& candidate) {
  std::string text = candidate.step.candidate;
  if (candidate.backend) text += fmt::format(" ({})", backend_name(*candidate.backend));
  if (candidate.step.key) text += fmt::format(" with {} activations", *candidate.step.key);
  return text;
}

void append_conditions(std::string& out, const Console& console,
                       const std::vector<ConditionAnswer>& conditions) {
  constexpr size_t kIndent = 14;
  std::string met;
  for (const ConditionAnswer& condition : conditions) {
    if (condition.met) {
      met += fmt::format("{}{}", met.empty() ? "" : "; ", condition.text);
      continue;
    }
    append_wrapped(out, "       " + console.bad("unmet") + "  ", kIndent, condition.text);
  }
  if (!met.empty()) append_wrapped(out, "       " + console.good("met") + "    ", kIndent, met);
}

void append_all_tried(std::string& out, const Console& console, const Explanation& e) {
  out += "\n" + console.bold("tried") + "\n";
  if (e.candidates.empty()) out += "  nothing: the request itself is refused\n";
  for (const Candidate& candidate : e.candidates) {
    const std::string said =
        candidate.step.supported ? console.good("yes") + "  " : console.bad("no") + "   ";
    append_wrapped(out, "  " + said, 7, candidate_text(candidate));
    if (!candidate.step.supported) {
      append_wrapped(out, "       why    ", 14, candidate.step.reason);
    }
    append_conditions(out, console, candidate.conditions);
  }
}

// Appends each backend that was tried and not chosen, once for each reason.
void append_tried(std::string& out, const Console& console, const Explanation& e) {
  std::set<std::pair<std::string, std::string>> said;
  for (const Candidate& candidate : e.candidates) {
    if (candidate.step.supported) continue;
    const std::string name = candidate.backend ? std::string(backend_name(*candidate.backend))
                                               : candidate.step.candidate;
    const std::string what = candidate.step.needs.empty()
                                 ? candidate.step.reason
                                 : fmt::format("needs {}", candidate.step.needs);
    if (!said.emplace(name, what).second) continue;
    if (said.size() == 1) {
      out += "\n" + console.bold(e.decision.backend ? "tried before it" : "tried") + "\n";
    }
    append_wrapped(out, label(name, kBackendColumn), kBackendColumn, what);
  }
}

void append_chosen(std::string& out, const Console& console, const Explanation& e, bool all) {
  const Decision& decision = e.decision;
  if (!decision.backend) {
    return;  // the first line and the error say so
  }
  out += "\n" + console.bold(e.refusal ? "would be chosen" : "chosen") + "\n";
  append_field(out, "backend", backend_name(*decision.backend));
  if (!decision.experts_class.empty()) append_field(out, "class", decision.experts_class);
  append_field(out, "sizes", sizes_text(e));
  if (all && e.settings) append_field(out, "quant config", settings_text(*e.settings));
  // The error says why there is none.
  const bool none = e.refusal && (e.row == nullptr || e.row->layout == nullptr);
  append_field(out, "layout", none ? "none" : layout_text(e.row));
  for (const std::string& note : decision.notes) append_field(out, "beware", note);
  for (const std::string& defect : e.defects) {
    if (!e.refusal || e.refusal->message() != defect) append_field(out, "beware", defect);
  }
}

void append_next(std::string& out, const Console& console, const Explanation& e, bool verbose) {
  if (!verbose) out += "\nMore: -v shows every condition.\n";
  out += "\n" + console.bold("next") + "\n";
  append_command(out, "  ", 4, e.next.parts);
  // Comments, for those who paste what follows "next" into a shell.
  if (!e.next.changed.empty()) {
    out += fmt::format("  # not as asked: {}\n", fmt::join(e.next.changed, "; "));
  }
  if (!e.start) return;
  if (e.start->blob) {
    out += fmt::format("  # take the blob: {}\n", e.start->why);
    return;
  }
  if (e.start->serve.empty()) return;
  out += "  # or no blob: at each start this makes the same bytes of the checkpoint\n";
  out += fmt::format("  #   {}\n", fmt::join(e.start->serve, " "));
}

}  // namespace

std::string explanation_text(const Console& console, const RuleSet& rules,
                             const ExplainOptions& options, const Explanation& e) {
  const bool verbose = console.verbose() > 0;
  std::string out;
  const bool refused = e.refusal || !e.decision.backend;
  std::string answer;
  append_wrapped(answer, "", 0, answer_text(rules, e));
  answer.pop_back();
  out += (refused ? console.bad(answer) : console.good(answer)) + "\n\n";
  out += console.bold("asked") + "\n";
  append_asked(out, rules, options, e, verbose);
  if (e.imagined) append_wrapped(out, "  ", 4, std::string(kOnlyWeights));
  if (verbose) {
    append_all_asked(out, rules, options, e);
    append_all_tried(out, console, e);
  }
  append_chosen(out, console, e, verbose);
  if (!verbose) append_tried(out, console, e);
  append_next(out, console, e, verbose);
  return out;
}

}  // namespace mxfp4
