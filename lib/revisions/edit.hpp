// The operations by which a release changes the rule set of its base. Each throws Error::internal
// when the row that it names is absent; the tests build every release.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::edit {

// A copy of a table's rows, for a rule set to change.
template <class Table>
auto rows(const Table& table) {
  return std::vector(table.begin(), table.end());
}

// The row to change.
[[nodiscard]] BackendRow& backend(RuleSet& rules, Backend backend);
[[nodiscard]] ExpertClass& expert_class(RuleSet& rules, std::string_view name);
[[nodiscard]] AliasRow& alias(RuleSet& rules, std::string_view name);
[[nodiscard]] SelectorRow& selector(RuleSet& rules, Selector selector);
[[nodiscard]] ConverterRow& converter(RuleSet& rules, Family family, Backend backend);

// The condition of a class's check of this topic ("device", "activation", "scheme", ...).
[[nodiscard]] Condition& condition(RuleSet& rules, std::string_view expert_class,
                                   std::string_view topic);
// Inserts a check behind the one of this topic.
void add_check_after(ExpertClass& expert_class, std::string_view topic, Check check);

// Where `value` stands in a list. Throws when it does not.
template <class Row, class Value>
auto position(std::vector<Row>& list, const Value& value) {
  const auto found = std::ranges::find(list, value);
  if (found == list.end()) throw Error::internal("a release changes what its base does not have");
  return found;
}

template <class Row, class Value>
void insert_before(std::vector<Row>& list, const Value& value, Row added) {
  list.insert(position(list, value), std::move(added));
}

template <class Row, class Value>
void insert_after(std::vector<Row>& list, const Value& value, Row added) {
  list.insert(position(list, value) + 1, std::move(added));
}

template <class Row, class Value>
void remove(std::vector<Row>& list, const Value& value) {
  list.erase(position(list, value));
}

// Removes a kernel package that the release does not know, from the platforms' defaults too.
void remove_package(RuleSet& rules, std::string_view package);

// Adds a backend's row and those of its converters, behind another backend's.
void add_backend_after(RuleSet& rules, Backend after, BackendRow added);
// Removes a backend that the release does not have: its row, converters, kernel settings and layouts.
// Priority lists and aliases that name it are left to the caller.
void remove_backend(RuleSet& rules, Backend backend);
void add_alias_before(RuleSet& rules, std::string_view before, AliasRow added);
void add_alias_after(RuleSet& rules, std::string_view after, AliasRow added);

// The row of a backend that the generic converter has no branch for: the ValueError that the engine
// raises. `expected`: the backends that its text lists, "TRTLLM, Triton, AITER, or XPU".
[[nodiscard]] LayoutRow generic_refusal(Backend backend, std::string_view expected);

// Layout rows go in front of all others: the first match wins.
void add_layouts(RuleSet& rules, std::vector<LayoutRow> added);
void drop_layouts(RuleSet& rules, Backend backend, Family family);
// Only the backend's rows with this condition.
void drop_layouts(RuleSet& rules, Backend backend, const TargetCondition& when);
// Gives `backend`, which has no kernel settings yet, those of `like`.
void copy_kernel_settings(RuleSet& rules, Backend like, Backend backend);

}  // namespace mxfp4::edit
