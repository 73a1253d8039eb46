#include "lib/revisions/variables.hpp"

#include <cctype>
#include <string_view>

#include "lib/layouts/knob_variables.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

void add(const Condition& condition, std::set<std::string>& names) {
  for (const Fact& fact : condition.facts) {
    if (fact.kind == FactKind::kVariable) names.emplace(fact.name);
  }
}

// Adds the variables that `text` names, which are those that a condition on a target looks at.
void add_words(std::string_view text, std::set<std::string>& names) {
  constexpr std::string_view kPrefix = "VLLM_";
  for (size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix, at)) {
    size_t end = at;
    while (end < text.size() &&
           (std::isupper(static_cast<unsigned char>(text[end])) != 0 ||
            std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    names.emplace(text.substr(at, end - at));
    at = end;
  }
}

void add_selection(const RuleSet& rules, std::set<std::string>& names) {
  for (const RequirementRow& row : rules.requirements) add(row.must_hold, names);
  for (const AliasRow& row : rules.aliases) add(row.narrowed_when, names);
  for (const ReplacementRow& row : rules.replacements) add(row.when, names);
  for (const SelectorRow& selector : rules.selectors) {
    for (const EnvOverrideRow& row : selector.env_overrides) names.emplace(row.variable);
    for (const PriorityRow& row : selector.priorities) add(row.when, names);
    for (const ForcedTry& row : selector.gates) add(row.when, names);
    for (const ExhaustedRow& row : selector.exhausted) add(row.when, names);
  }
}

}  // namespace

std::set<std::string> variables_of(const RuleSet& rules) {
  std::set<std::string> names(kKnobVariables.begin(), kKnobVariables.end());
  names.emplace(kRoutingVariable);
  if (!rules.gemm_type.variable.empty()) names.emplace(rules.gemm_type.variable);
  add(rules.uses_all2all, names);
  add(rules.batched, names);
  add_selection(rules, names);
  for (const ExpertClass& row : rules.classes) {
    for (const Check& check : row.checks) add(check.passes, names);
    if (row.suffix) add(row.suffix->when, names);
  }
  for (const CallerRow& caller : rules.callers) {
    for (const DirectRow& row : caller.direct) add(row.when, names);
    for (const DirectRow& row : caller.exceptions) add(row.when, names);
  }
  for (const LayoutRow& row : rules.layouts) add_words(row.when.text, names);
  for (const RoundingRow& row : rules.rounding) add_words(row.when.text, names);
  return names;
}

std::set<std::string> variables_of_all_revisions() {
  std::set<std::string> names;
  for (const Release* release : all_releases()) names.merge(variables_of(rules_of(*release)));
  return names;
}

}  // namespace mxfp4
