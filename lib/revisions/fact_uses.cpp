#include "lib/revisions/fact_uses.hpp"

#include <string_view>

#include "lib/layouts/knobs.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// Collects the uses of one kind of fact.
struct Collector {
  FactKind kind;
  FactUses uses;

  void add(FactKind of, std::string_view name, std::string_view about) {
    if (of == kind && !name.empty()) uses[std::string(name)].emplace(about);
  }
  void add(const Condition& condition, std::string_view about) {
    for (const AskedName& asked : condition.asked) add(asked.kind, asked.name, about);
  }
  void add(const TargetCondition& condition, std::string_view about) {
    for (const AskedVariable& asked : condition.variables) {
      add(FactKind::kVariable, asked.name, about);
    }
  }
};

void add_selection(const RuleSet& rules, Collector& uses) {
  constexpr std::string_view kOrder = "the order of backends";
  for (const RequirementRow& row : rules.requirements) uses.add(row.must_hold, "every backend");
  for (const AliasRow& row : rules.aliases) uses.add(row.narrowed_when, row.name);
  for (const ReplacementRow& row : rules.replacements) uses.add(row.when, backend_name(row.from));
  for (const SelectorRow& selector : rules.selectors) {
    for (const PriorityRow& row : selector.priorities) uses.add(row.when, kOrder);
    for (const ForcedTry& row : selector.gates) uses.add(row.when, kOrder);
    for (const ExhaustedRow& row : selector.exhausted) uses.add(row.when, kOrder);
    for (const EnvOverrideRow& row : selector.env_overrides) {
      uses.add(FactKind::kVariable, row.variable, kOrder);
    }
  }
}

void add_classes(const RuleSet& rules, Collector& uses) {
  for (const BackendRow& backend : rules.backends) {
    const std::string_view name = backend_name(backend.backend);
    uses.add(FactKind::kPackage, backend.required_package, name);
    for (const std::string_view class_name : backend.classes) {
      const ExpertClass* row = find_class(rules, class_name);
      if (row == nullptr) continue;
      for (const Check& check : row->checks) uses.add(check.passes, name);
      if (row->suffix) uses.add(row->suffix->when, name);
    }
  }
  for (const CallerRow& caller : rules.callers) {
    for (const DirectRow& row : caller.direct) uses.add(row.when, caller.method);
    for (const DirectRow& row : caller.exceptions) uses.add(row.when, caller.method);
  }
  for (const ModelBackendRow& row : rules.model_backends) {
    for (const RequirementRow& requirement : row.requirements) {
      uses.add(requirement.must_hold, backend_name(row.backend));
    }
  }
}

void add_layouts(const RuleSet& rules, Collector& uses) {
  if (rules.engine == Engine::kVllm) {  // read by vLLM's converters and router
    for (const Knob& knob : kKnobs) {
      const std::string_view backend = knob.decides.substr(knob.decides.rfind(' ') + 1);
      uses.add(FactKind::kVariable, knob.variable, backend);
    }
    if (!rules.simulates_beside_routing) uses.add(FactKind::kVariable, kRoutingVariable, "routing");
  }
  for (const LayoutRow& row : rules.layouts) uses.add(row.when, backend_name(row.backend));
  for (const RoundingRow& row : rules.rounding) uses.add(row.when, "padded sizes");
}

}  // namespace

FactUses fact_uses(const RuleSet& rules, FactKind kind) {
  Collector uses{kind, {}};
  uses.add(rules.uses_all2all, "all-to-all kernels");
  uses.add(rules.batched, "batched activations");
  uses.add(FactKind::kVariable, rules.gemm_type.variable, "grouped kernels");
  for (const FusedSharedRow& row : rules.fused_shared) uses.add(row.when, "shared experts");
  add_selection(rules, uses);
  add_classes(rules, uses);
  add_layouts(rules, uses);
  if (kind == FactKind::kPackage) {
    for (const std::string_view package : rules.packages) uses.uses[std::string(package)];
  }
  return std::move(uses.uses);
}

std::set<std::string> variables_of(const RuleSet& rules) {
  std::set<std::string> names;
  for (const auto& [name, uses] : fact_uses(rules, FactKind::kVariable)) names.insert(name);
  return names;
}

std::set<std::string> variables_of_all_revisions() {
  std::set<std::string> names;
  for (const Release* release : all_releases()) names.merge(variables_of(rules_of(*release)));
  return names;
}

}  // namespace mxfp4
