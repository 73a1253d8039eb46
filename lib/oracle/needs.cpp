#include "lib/oracle/needs.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "lib/core/error.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

// How much a change asks of a user: a variable or flag of the engine, a package, another machine,
// another model.
int cost_of(FactKind kind) {
  switch (kind) {
    case FactKind::kPackage:
      return 2;
    case FactKind::kMachine:
      return 5;
    case FactKind::kActivation:
    case FactKind::kRouting:
      return 20;
    default:
      return 1;
  }
}

bool same_subject(const Change& a, const Change& b) { return a.kind == b.kind && a.name == b.name; }

// `added` on top of `changes`: the later one of two changes of the same thing holds.
std::vector<Change> merge_changes(std::vector<Change> changes, const std::vector<Change>& added) {
  for (const Change& change : added) {
    std::erase_if(changes, [&](const Change& old) { return same_subject(old, change); });
    changes.push_back(change);
  }
  return changes;
}

// One way to ask: the deployment that follows from a request, and the key that a class sees.
struct Asked {
  Deployment deployment;
  std::optional<std::string> key;
};

std::optional<Asked> ask(const Asker& asker, const std::vector<Change>& changes,
                         std::optional<std::string_view> key) {
  Asked asked;
  try {
    asked.deployment =
        resolve_deployment(asker.rules, with_changes(asker, changes), asker.caller, asker.config);
  } catch (const Error&) {
    return std::nullopt;  // contradictory: not a change to propose
  }
  if (key) asked.key = std::string(*key);
  for (const Change& change : changes) {
    if (change.kind == FactKind::kActivationKey) asked.key = change.value;
  }
  return asked;
}

bool holds(const RuleSet& rules, const Condition& condition, const Asked& asked) {
  try {
    Question question = make_question(rules, asked.deployment);
    if (asked.key) question.key = *asked.key;
    return condition.holds(question);
  } catch (const Error&) {
    return false;  // a malformed number in a variable, a name that the rules do not know
  }
}

// The facts that a condition looks at. The name of a rule set's own condition gives the facts of
// that condition.
void append_facts(const RuleSet& rules, const std::vector<Fact>& facts, std::vector<Fact>& out) {
  for (const Fact& fact : facts) {
    switch (fact.kind) {
      case FactKind::kGated:
        append_facts(rules, rules.gated.facts, out);
        break;
      case FactKind::kUsesAll2All:
        append_facts(rules, rules.uses_all2all.facts, out);
        break;
      case FactKind::kBatched:
        append_facts(rules, rules.batched.facts, out);
        break;
      case FactKind::kGemmType:
        if (!rules.gemm_type.variable.empty()) {
          out.push_back({FactKind::kVariable, rules.gemm_type.variable, fact.values});
        }
        break;
      default:
        out.push_back(fact);
    }
  }
}

void append_change(std::vector<Change>& changes, Change change) {
  if (std::ranges::find(changes, change) == changes.end()) changes.push_back(std::move(change));
}

// Some kernels run below capability 8.0, but the engine's gpt-oss does not start there.
bool below_capability_8(const Machine& machine) { return machine.arch.starts_with("sm7"); }

// Machines of the asker's own platform come first, and those on which most models do not
// start last.
void append_machines(Platform own, std::vector<Change>& changes) {
  for (const bool old : {false, true}) {
    for (const bool same : {true, false}) {
      for (const Machine& machine : machines()) {
        if (below_capability_8(machine) != old || machine.names.empty()) continue;
        if (!machine.least.empty()) continue;  // it says too little to meet a condition
        if ((machine.platform == own) != same) continue;
        append_change(changes, {FactKind::kMachine, "", std::string(machine.arch)});
      }
    }
  }
}

std::vector<Change> candidates(const Asker& asker, const Condition& condition, Platform own) {
  std::vector<Fact> facts;
  append_facts(asker.rules, condition.facts, facts);
  std::vector<Change> changes;
  for (const Fact& fact : facts) {
    if (fact.kind == FactKind::kMachine) {
      append_machines(own, changes);
      append_change(changes, {FactKind::kMachine, "", std::nullopt});
      continue;
    }
    for (const auto& value : fact.values) {
      append_change(changes, {fact.kind, std::string(fact.name),
                              value ? std::optional(std::string(*value)) : std::nullopt});
    }
  }
  return changes;
}

bool changes_key(const Change& change) { return change.kind == FactKind::kActivationKey; }

// The cheapest one or two changes, beside those already made, after which the condition holds.
class Search {
 public:
  Search(const Asker& asker, const Condition& condition, std::optional<std::string_view> key,
         std::vector<Change> made)
      : asker_(asker), condition_(condition), key_(key), made_(std::move(made)) {}

  // Keeps the key, which is the backend's own: with another key it would be another backend.
  Search& keep_key() {
    keeps_key_ = true;
    return *this;
  }

  std::optional<std::vector<Change>> run() {
    const std::optional<Asked> asked = ask(asker_, made_, key_);
    if (!asked) return std::nullopt;
    std::vector<Change> changes = candidates(asker_, condition_, asked->deployment.platform);
    if (keeps_key_) std::erase_if(changes, changes_key);
    for (const Change& change : changes) try_changes({change});
    for (size_t i = 0; i < changes.size(); ++i) {
      for (size_t j = i + 1; j < changes.size(); ++j) {
        if (!same_subject(changes[i], changes[j])) try_changes({changes[i], changes[j]});
      }
    }
    return best_;
  }

 private:
  void try_changes(const std::vector<Change>& changes) {
    int cost = 0;
    for (const Change& change : changes) cost += cost_of(change.kind);
    if (cost >= least_) return;
    const std::optional<Asked> asked = ask(asker_, merge_changes(made_, changes), key_);
    if (!asked || !holds(asker_.rules, condition_, *asked)) return;
    least_ = cost;
    best_ = changes;
  }

  const Asker& asker_;
  const Condition& condition_;
  std::optional<std::string_view> key_;
  std::vector<Change> made_;
  bool keeps_key_ = false;
  int least_ = std::numeric_limits<int>::max();
  std::optional<std::vector<Change>> best_;
};

// The parts of a conjunction.
template <class Use>
void for_each_part(const Condition& condition, Use&& use) {
  if (condition.always_holds) return;
  if (condition.parts == nullptr) return use(condition);
  for (const Condition& part : *condition.parts) for_each_part(part, use);
}

const ExpertClass& known_class(const RuleSet& rules, std::string_view name) {
  const ExpertClass* found = find_class(rules, name);
  if (found == nullptr) throw Error::internal("a class without rules");
  return *found;
}

void change_machine(const std::optional<std::string>& arch, DeploymentFacts& request) {
  if (!arch) {  // any machine but those that the table knows: XPU is in no row
    request.platform = Platform::kXpu;
    request.arch.reset();
    return;
  }
  const Machine* machine = find_machine(*arch);
  if (machine == nullptr) throw Error::internal("a machine that the table does not know");
  request.platform = machine->platform;
  request.arch = *arch;
}

void change_package(const Asker& asker, const Change& change, DeploymentFacts& request) {
  if (!request.libs) {
    request.libs = resolve_deployment(asker.rules, request, asker.caller, asker.config).libs;
    request.absent_libs.clear();
  }
  if (change.value) {
    request.absent_libs.erase(change.name);
    request.libs->insert(change.name);
  } else {
    request.libs->erase(change.name);
  }
}

void apply_change(const Asker& asker, const Change& change, DeploymentFacts& request) {
  switch (change.kind) {
    case FactKind::kMachine:
      return change_machine(change.value, request);
    case FactKind::kPackage:
      return change_package(asker, change, request);
    case FactKind::kVariable:
      request.env.erase(change.name);
      if (change.value) request.env.emplace(change.name, *change.value);
      return;
    case FactKind::kActivationKey:
      request.activation_override = change.value;
      return;
    default:
      if (set_fact(request, change.kind, change.value)) return;
      throw Error::internal("a fact that is not one of the request");
  }
}

// One of the changes that the whole class needs, if this one is enough for the condition; else the
// changes that meet it.
std::vector<Change> needs_of(const Asker& asker, const Condition& condition,
                             std::optional<std::string_view> key,
                             const std::vector<Change>& whole) {
  for (const Change& change : whole) {
    const std::optional<Asked> asked = ask(asker, {change}, key);
    if (asked && holds(asker.rules, condition, *asked)) return {change};
  }
  return Search(asker, condition, key, {}).run().value_or(std::vector<Change>());
}

// The backend that a class was tried for: the one whose own key is the step's, if several try it.
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

}  // namespace

DeploymentFacts with_changes(const Asker& asker, const std::vector<Change>& changes) {
  DeploymentFacts request = asker.request;
  // The machine comes first, because packages that were not given follow from it.
  for (const bool machine : {true, false}) {
    for (const Change& change : changes) {
      if ((change.kind == FactKind::kMachine) == machine) apply_change(asker, change, request);
    }
  }
  return request;
}

std::vector<ConditionAnswer> examine_class(const Asker& asker, std::string_view class_name,
                                           std::optional<std::string_view> key) {
  std::vector<ConditionAnswer> answers;
  const std::optional<Asked> asked = ask(asker, {}, key);
  if (!asked) return answers;
  const std::vector<Change> whole = class_needs(asker, class_name, key);
  for (const Check& check : known_class(asker.rules, class_name).checks) {
    for_each_part(check.passes, [&](const Condition& part) {
      ConditionAnswer answer{.topic = check.topic, .text = part.text};
      answer.met = holds(asker.rules, part, *asked);
      if (!answer.met) answer.needs = needs_of(asker, part, key, whole);
      answers.push_back(std::move(answer));
    });
  }
  return answers;
}

bool class_supports(const Asker& asker, const std::vector<Change>& changes,
                    std::string_view class_name, std::optional<std::string_view> key) {
  const std::optional<Asked> asked = ask(asker, changes, key);
  return asked && std::ranges::all_of(
                      known_class(asker.rules, class_name).checks,
                      [&](const Check& check) { return holds(asker.rules, check.passes, *asked); });
}

std::vector<Change> class_needs(const Asker& asker, std::string_view class_name,
                                std::optional<std::string_view> key) {
  std::vector<Change> made;
  for (const Check& check : known_class(asker.rules, class_name).checks) {
    const std::optional<Asked> asked = ask(asker, made, key);
    if (!asked) return {};
    if (holds(asker.rules, check.passes, *asked)) continue;
    // Each part is searched by itself, because one search tries at most two changes.
    bool found = true;
    for_each_part(check.passes, [&](const Condition& part) {
      const std::optional<Asked> now = ask(asker, made, key);
      if (!found || !now || holds(asker.rules, part, *now)) return;
      const auto changes = Search(asker, part, key, made).keep_key().run();
      found = changes.has_value();
      if (found) made = merge_changes(std::move(made), *changes);
    });
    if (!found) return {};
  }
  return class_supports(asker, made, class_name, key) ? made : std::vector<Change>();
}

std::vector<Candidate> examine_trace(const Asker& asker, const Decision& decision) {
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

}  // namespace mxfp4
