#include "lib/revisions/fact_uses.hpp"

#include <algorithm>
#include <string_view>

#include "lib/layouts/knobs.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// Collects the uses of one kind of fact.
class Collector {
 public:
  explicit Collector(FactKind kind) : kind_(kind) {}

  // A rule that looks at `condition` decides `what` about `about`; an empty text: about all.
  void add(const Condition& condition, const std::string& what, std::string_view about = "") {
    for (const AskedName& asked : condition.asked) {
      if (asked.kind == kind_) add(asked.name, what, about);
    }
  }
  void add(const TargetCondition& condition, const std::string& what, std::string_view about = "") {
    for (const AskedVariable& variable : condition.variables) {
      if (!variable.name.empty() && kind_ == FactKind::kVariable) add(variable.name, what, about);
    }
  }
  void add(std::string_view name, const std::string& what, std::string_view about = "") {
    std::set<std::string>& objects = uses_[std::string(name)][what];
    if (!about.empty()) objects.emplace(about);
  }

  FactUses take() { return std::move(uses_); }

 private:
  FactKind kind_;
  FactUses uses_;
};

constexpr const char* kOrder = "which backend is tried first";
constexpr const char* kSupport = "whether these are supported";
constexpr const char* kLayout = "the layout of";

void add_selection(const RuleSet& rules, Collector& uses) {
  for (const RequirementRow& row : rules.requirements) {
    uses.add(row.must_hold, "whether the deployment is refused");
  }
  for (const AliasRow& row : rules.aliases) {
    uses.add(row.narrowed_when, "the candidates of --moe-backend", row.name);
  }
  for (const ReplacementRow& row : rules.replacements) {
    uses.add(row.when, "which backend takes the place of", backend_name(row.from));
  }
  for (const SelectorRow& selector : rules.selectors) {
    for (const PriorityRow& row : selector.priorities) uses.add(row.when, kOrder);
    for (const ForcedTry& row : selector.gates) uses.add(row.when, kOrder);
    for (const ExhaustedRow& row : selector.exhausted) uses.add(row.when, kOrder);
  }
}

// The backends that try an expert class.
std::set<std::string_view> backends_with(const RuleSet& rules, std::string_view class_name) {
  std::set<std::string_view> names;
  for (const BackendRow& row : rules.backends) {
    if (std::ranges::find(row.classes, class_name) != row.classes.end()) {
      names.insert(backend_name(row.backend));
    }
  }
  return names;
}

void add_classes(const RuleSet& rules, Collector& uses) {
  for (const ExpertClass& row : rules.classes) {
    for (const std::string_view backend : backends_with(rules, row.name)) {
      for (const Check& check : row.checks) uses.add(check.passes, kSupport, backend);
      if (row.suffix) uses.add(row.suffix->when, kSupport, backend);
    }
  }
  for (const CallerRow& caller : rules.callers) {
    for (const DirectRow& row : caller.direct) {
      uses.add(row.when, "the choice that a method makes itself", caller.method);
    }
    for (const DirectRow& row : caller.exceptions) {
      uses.add(row.when, "the choice that a method makes itself", caller.method);
    }
  }
  for (const ModelBackendRow& row : rules.model_backends) {
    for (const RequirementRow& requirement : row.requirements) {
      uses.add(requirement.must_hold, kSupport, backend_name(row.backend));
    }
  }
  for (const FusedSharedRow& row : rules.fused_shared) {
    uses.add(row.when, "whether a rank also holds the shared experts");
  }
}

// What the conditions of the deployment, of the selection and of the classes look at.
void add_conditions(const RuleSet& rules, Collector& uses) {
  uses.add(rules.uses_all2all, "whether an all-to-all kernel is in use");
  uses.add(rules.batched, "the format of activations");
  add_selection(rules, uses);
  add_classes(rules, uses);
}

}  // namespace

FactUses variable_uses(const RuleSet& rules) {
  Collector uses(FactKind::kVariable);
  if (rules.engine == Engine::kVllm) {  // read by vLLM's converters and router
    for (const Knob& knob : kKnobs) {
      if (!knob.variable.empty())
        uses.add(knob.variable, kLayout, knob.decides.substr(knob.decides.rfind(' ') + 1));
    }
    if (!rules.simulates_beside_routing) uses.add(kRoutingVariable, "the routing method");
  }
  if (!rules.gemm_type.variable.empty()) {
    uses.add(rules.gemm_type.variable, "the kind of grouped kernel");
  }
  add_conditions(rules, uses);
  for (const SelectorRow& selector : rules.selectors) {
    for (const EnvOverrideRow& row : selector.env_overrides) uses.add(row.variable, kOrder);
  }
  for (const LayoutRow& row : rules.layouts) {
    uses.add(row.when, kLayout, backend_name(row.backend));
  }
  for (const RoundingRow& row : rules.rounding) uses.add(row.when, "how sizes are rounded");
  return uses.take();
}

FactUses package_uses(const RuleSet& rules) {
  Collector uses(FactKind::kPackage);
  add_conditions(rules, uses);
  for (const BackendRow& row : rules.backends) {
    if (!row.required_package.empty()) {
      uses.add(row.required_package, kSupport, backend_name(row.backend));
    }
  }
  FactUses found = uses.take();
  for (const std::string_view package : rules.packages) found[std::string(package)];
  return found;
}

std::set<std::string> variables_of(const RuleSet& rules) {
  std::set<std::string> names;
  for (const auto& [name, uses] : variable_uses(rules)) names.insert(name);
  return names;
}

std::set<std::string> variables_of_all_revisions() {
  std::set<std::string> names;
  for (const Release* release : all_releases()) names.merge(variables_of(rules_of(*release)));
  return names;
}

}  // namespace mxfp4
