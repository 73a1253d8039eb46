// One method a step of the reference's two selection functions; a refusal inside is an Error with
// the reference's exception type, as there, and becomes a Decision at the end.
#include "lib/oracle/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

using Key = std::optional<std::string_view>;
using Backends = std::vector<Backend>;

const BackendRow& row_of(const RuleSet& rules, Backend backend) {
  const BackendRow* row = find_backend_row(rules, backend);
  if (row == nullptr) throw Error::internal("a rule names a backend that has no row");
  return *row;
}

const ExpertClass& class_named(const RuleSet& rules, std::string_view name) {
  const ExpertClass* found = find_class(rules, name);
  if (found == nullptr) throw Error::internal("a backend names a class that has no rules");
  return *found;
}

Key own_key(const BackendRow& row) { return row.key.empty() ? Key() : Key(row.key); }
Key key_of(std::string_view name) { return name.empty() ? Key() : Key(name); }

template <class Rows>
const auto* first_match(const Rows& rows, const Question& question) {
  for (const auto& row : rows) {
    if (row.when.holds(question)) return &row;
  }
  return static_cast<decltype(&*rows.begin())>(nullptr);
}

class Selection {
 public:
  Selection(const RuleSet& rules, const Deployment& deployment)
      : rules_(rules), deployment_(deployment), question_(make_question(rules, deployment)) {
    decision_.revision = rules.name;
  }

  Decision run() {
    try {
      select();
    } catch (const Error& error) {
      if (error.reference_type_name().empty()) throw;
      decision_.error_type = error.reference_type_name();
      decision_.error_message = error.what();
    }
    return std::move(decision_);
  }

 private:
  void select() {
    for (const RequirementRow& row : rules_.requirements) {
      if (!row.must_hold.holds(question_)) refuse(row.refusal);
    }
    const auto selector =
        std::ranges::find(rules_.selectors, deployment_.selector, &SelectorRow::selector);
    if (selector == rules_.selectors.end()) throw Error::internal("a selector has no rules");
    if (selector->uses_keys) key_ = resolve_key();
    if (deployment_.moe_backend == "auto") {
      select_auto(*selector);
    } else {
      select_named(*selector);
    }
  }

  // The checkpoint's own key and the user's must agree.
  Key resolve_key() {
    const auto& given = deployment_.activation_override;
    const auto& model = deployment_.model_activation;
    if (given && model && *given != *model) refuse(rules_.messages.key_conflict);
    const auto& key = given ? given : model;
    return key ? Key(*key) : Key();
  }

  void select_named(const SelectorRow& selector) {
    const auto alias = std::ranges::find(rules_.aliases, deployment_.moe_backend, &AliasRow::name);
    if (alias == rules_.aliases.end()) refuse(rules_.messages.unknown_backend);
    const Backends replaced = replace(alias->candidates);
    const Backends candidates = narrow(selector, *alias, replaced);
    if (candidates.empty()) {
      question_.key = key_;
      refuse(rules_.messages.no_variant, {{"candidates", value_list(replaced)}});
    }
    try_each(selector, candidates);
  }

  // An alias's candidates for the requested key.
  [[nodiscard]] Backends narrow(const SelectorRow& selector, const AliasRow& alias,
                                const Backends& candidates) const {
    if (alias.narrowed_when.holds && alias.narrowed_when.holds(question_)) return alias.narrowed;
    if (!selector.uses_keys && !selector.filters_named) return candidates;
    if (!selector.drops_other_keys) return candidates;
    if (alias.keeps_order_without_key && !key_) return candidates;
    return filter_by_key(rules_, candidates, key_);
  }

  // The key that a backend is asked with.
  [[nodiscard]] Key asked_key(const BackendRow& row, bool own) const {
    if (own) return row.survives_any_key ? key_ : own_key(row);
    return key_ ? key_ : own_key(row);
  }

  // Tries every candidate by itself; the user sees the ValueError of the last one.
  void try_each(const SelectorRow& selector, const Backends& candidates) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const BackendRow& row = row_of(rules_, candidates[i]);
      try {
        return try_named(row, asked_key(row, selector.own_key_when_named));
      } catch (const Error& error) {
        const bool last = i + 1 == candidates.size();
        if (last || error.reference_type_name() != "ValueError") throw;
      }
    }
  }

  void select_auto(const SelectorRow& selector) {
    const PriorityRow* row = first_match(selector.priorities, question_);
    if (row == nullptr) throw Error::internal("no priority list for this deployment");
    Backends list = row->backends;
    if (selector.uses_keys && selector.drops_other_keys) list = filter_by_key(rules_, list, key_);
    if (apply_env_overrides(selector, list)) return;
    if (const ForcedTry* gate = first_match(selector.gates, question_)) {
      return try_alone(row_of(rules_, gate->backend), key_);
    }
    const size_t first_step = decision_.trace.size();
    std::vector<const BackendRow*> asked;  // one a trace step
    for (const Backend backend : list) {
      const BackendRow& candidate = row_of(rules_, backend);
      if (try_classes(candidate, asked_key(candidate, selector.own_key_in_list))) return;
      asked.resize(decision_.trace.size() - first_step, &candidate);
    }
    exhausted(selector, list, asked, first_step);
  }

  // True when a variable decided. May drop backends from the list.
  bool apply_env_overrides(const SelectorRow& selector, Backends& list) {
    for (const EnvOverrideRow& row : selector.env_overrides) {
      const auto value = deployment_.env.find(std::string(row.variable));
      if (value == deployment_.env.end()) continue;
      if (!python_int_is_nonzero(value->second)) {
        std::erase_if(list, [&](Backend backend) {
          return std::ranges::find(row.dropped_when_zero, backend) != row.dropped_when_zero.end();
        });
        continue;
      }
      const ForcedTry* forced = first_match(row.tries, question_);
      if (forced == nullptr) refuse(row.otherwise);
      try_alone(row_of(rules_, forced->backend), key_of(forced->key));
      return true;
    }
    return false;
  }

  void exhausted(const SelectorRow& selector, const Backends& list,
                 const std::vector<const BackendRow*>& asked, size_t first_step) {
    const ExhaustedRow* row = first_match(selector.exhausted, question_);
    if (row == nullptr) throw Error::internal("no rule for an exhausted list");
    if (row->last_try) {
      return try_alone(row_of(rules_, row->last_try->backend), key_of(row->last_try->key));
    }
    if (!row->refusal) {
      decision_.backend = Backend::NONE;
      return;
    }
    std::string reasons;
    for (size_t i = 0; i < asked.size(); ++i) {
      reasons += fmt::format("{}backend: {}, reason: {}", i == 0 ? "" : "; ", asked[i]->value,
                             decision_.trace[first_step + i].reason);
    }
    refuse(*row->refusal, {{"candidates", value_list(list)}, {"reasons", reasons}});
  }

  // try_alone() for a backend that the user asked for.
  void try_named(const BackendRow& row, Key key) {
    if (!deployment_.lora || (row.lora_classes.empty() && row.lora_refusal.type.empty())) {
      return try_alone(row, key);
    }
    if (!row.lora_refusal.type.empty()) refuse(row.lora_refusal, {{"value", row.value}});
    BackendRow with_lora = row;
    with_lora.classes.insert(with_lora.classes.begin(), row.lora_classes.begin(),
                             row.lora_classes.end());
    try_alone(with_lora, key);
  }

  // Chooses this backend, or refuses with the reason of its last class.
  void try_alone(const BackendRow& row, Key key) {
    if (try_classes(row, key)) return;
    if (row.classes.empty()) refuse(rules_.messages.no_classes, {{"value", row.value}});
    const std::string reason = decision_.trace.back().reason;
    refuse(rules_.messages.unsupported, {{"value", row.value}, {"reason", reason}});
  }

  bool try_classes(const BackendRow& row, Key key) {
    const std::string package(row.required_package);
    if (!package.empty() && !deployment_.libs.contains(package)) refuse(row.import_failure);
    question_.key = key;
    for (const std::string_view name : row.classes) {
      TraceStep& step = decision_.trace.emplace_back(ask_class(question_, name));
      step.backend = row.backend;
      if (!step.supported) continue;
      decision_.backend = row.backend;
      decision_.experts_class = name;
      return true;
    }
    return false;
  }

  Backends replace(Backends backends) const {
    for (Backend& backend : backends) {
      for (const ReplacementRow& row : rules_.replacements) {
        if (row.from == backend && row.when.holds(question_)) {
          backend = row.to;
          break;
        }
      }
    }
    return backends;
  }

  [[nodiscard]] std::string value_list(const Backends& backends) const {
    std::vector<std::string_view> values;
    for (const Backend backend : backends) values.push_back(row_of(rules_, backend).value);
    return python_list(values);
  }

  [[noreturn]] void refuse(
      const Refusal& refusal,
      std::initializer_list<std::pair<std::string_view, std::string_view>> extra = {}) const {
    throw Error::unsupported(fill_text(refusal.text, question_, extra))
        .reference_type(std::string(refusal.type));
  }

  const RuleSet& rules_;
  const Deployment& deployment_;
  Question question_;
  Key key_;
  Decision decision_;
};

}  // namespace

TraceStep ask_class(const Question& question, std::string_view expert_class) {
  const ExpertClass& candidate = class_named(question.rules, expert_class);
  TraceStep step;
  step.candidate = candidate.name;
  step.supported = true;
  if (question.key) step.key = std::string(*question.key);
  for (const Check& check : candidate.checks) {
    if (check.passes.holds(question)) continue;
    step.supported = false;
    step.needs = check.passes.text;
    step.reason = fill_text(check.reason, question);
    if (candidate.suffix && candidate.suffix->when.holds(question)) {
      step.reason += candidate.suffix->text;
    }
    break;
  }
  return step;
}

Decision select_backend(const RuleSet& rules, const Deployment& deployment) {
  return Selection(rules, deployment).run();
}

Decision construct_layer(const RuleSet& rules, const Deployment& deployment) {
  Decision decision = select_backend(rules, deployment);
  const int64_t ranks = flatten_parallel(rules, deployment.parallel).tp_size;
  if (deployment.intermediate_size.value_or(0) % ranks == 0) return decision;
  Decision refused;
  refused.error_type = "AssertionError";
  refused.revision = std::move(decision.revision);
  return refused;
}

std::vector<Backend> filter_by_key(const RuleSet& rules, const std::vector<Backend>& backends,
                                   std::optional<std::string_view> key) {
  std::vector<Backend> kept;
  for (const Backend backend : backends) {
    const BackendRow& row = row_of(rules, backend);
    if (key ? row.key == *key || row.survives_any_key : row.key.empty()) kept.push_back(backend);
  }
  if (key && rules.falls_back_without_key) {
    for (const Backend backend : backends) {
      const BackendRow& row = row_of(rules, backend);
      if (row.key.empty() && !row.survives_any_key) kept.push_back(backend);
    }
  }
  return kept.empty() && !key ? backends : kept;
}

}  // namespace mxfp4
