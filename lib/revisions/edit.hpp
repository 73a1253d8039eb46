// How a release changes the rules of the one before it. Every row has a name; every operation
// throws Error::internal where the row that it names is absent, or a row that it adds is there
// already. The tests build every release.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::edit {

// --- what a row is called ---

inline std::string_view name_of(std::string_view name) { return name; }
inline Backend name_of(Backend backend) { return backend; }
inline Backend name_of(const BackendRow& row) { return row.backend; }
inline Platform name_of(const StockRow& row) { return row.platform; }
inline Selector name_of(const SelectorRow& row) { return row.selector; }
inline std::string_view name_of(const ActivationKeyRow& row) { return row.name; }
inline std::string_view name_of(const NumberedName& row) { return row.name; }
inline std::string_view name_of(const RequirementRow& row) { return row.name; }
inline std::string_view name_of(const ExpertClass& row) { return row.name; }
inline std::string_view name_of(const ModelBackendRow& row) { return row.experts_class; }
inline std::string_view name_of(const AliasRow& row) { return row.name; }
inline std::string_view name_of(const LoadNoteRow& row) { return row.name; }
inline std::string_view name_of(const DefectRow& row) { return row.name; }
inline std::string_view name_of(const Check& row) { return row.topic; }
inline std::string_view name_of(const All2AllHiddenRow& row) { return row.all2all_backend; }
inline std::string_view name_of(const CallerRow& row) { return row.text; }
inline std::string_view name_of(const DirectRow& row) { return row.when.text; }
inline std::string_view name_of(const RoutingRow& row) { return row.text; }
inline std::string_view name_of(const RoundingRow& row) { return row.when.text; }
inline std::string_view name_of(const PriorityRow& row) { return row.when.text; }
inline std::string_view name_of(const ExhaustedRow& row) { return row.when.text; }

// --- any table ---

// Words for an error's text.
inline std::string_view words_of(std::string_view name) { return name; }
inline std::string_view words_of(Backend name) { return backend_name(name); }
inline std::string_view words_of(Platform name) { return platform_name(name); }
inline std::string_view words_of(Selector name) { return selector_name(name); }

template <class Row>
using Name = decltype(name_of(std::declval<const Row&>()));

template <class Row>
auto find(std::vector<Row>& table, Name<Row> name) {
  return std::ranges::find(table, name, [](const Row& row) { return name_of(row); });
}

template <class Row>
auto place(std::vector<Row>& table, std::type_identity_t<Name<Row>> name) {
  const auto found = find(table, name);
  if (found != table.end()) return found;
  throw Error::internal(
      fmt::format("a release changes '{}', which the one before does not have", words_of(name)));
}

// The row of this name, for the release to change.
template <class Row>
Row& row(std::vector<Row>& table, std::type_identity_t<Name<Row>> name) {
  return *place(table, name);
}

template <class Row>
void insert(std::vector<Row>& table, typename std::vector<Row>::iterator at, Row added) {
  if (find(table, name_of(added)) != table.end()) {
    throw Error::internal(
        fmt::format("a release adds '{}', which the one before has", words_of(name_of(added))));
  }
  table.insert(at, std::move(added));
}

template <class Row>
void add(std::vector<Row>& table, std::type_identity_t<Row> added) {
  insert(table, table.end(), std::move(added));
}

template <class Row>
void add_first(std::vector<Row>& table, std::type_identity_t<Row> added) {
  insert(table, table.begin(), std::move(added));
}

template <class Row>
void add_before(std::vector<Row>& table, std::type_identity_t<Name<Row>> name,
                std::type_identity_t<Row> added) {
  insert(table, place(table, name), std::move(added));
}

template <class Row>
void add_after(std::vector<Row>& table, std::type_identity_t<Name<Row>> name,
               std::type_identity_t<Row> added) {
  insert(table, place(table, name) + 1, std::move(added));
}

template <class Row>
void remove(std::vector<Row>& table, std::type_identity_t<Name<Row>> name) {
  table.erase(place(table, name));
}

// --- classes and backends ---

// The condition of a class's check of this topic ("device", "activation", "scheme", ...).
[[nodiscard]] Condition& condition(RuleSet& rules, std::string_view expert_class,
                                   std::string_view topic);
// Renames a class wherever a row names it.
void rename_class(RuleSet& rules, std::string_view name, std::string_view renamed);

// Adds a backend's row behind another backend's, and converters of both families, which take it.
void add_backend_after(RuleSet& rules, Backend after, BackendRow added);
[[nodiscard]] ConverterRow& converter(RuleSet& rules, Family family, Backend backend);

// --- layouts: the rows of a backend, for one family or both; the first that matches wins ---

// The row of a backend that the generic converter has no branch for: the ValueError that the engine
// raises. `expected`: the backends that its text lists, "TRTLLM, Triton, AITER, or XPU".
[[nodiscard]] LayoutRow generic_refusal(Backend backend, std::string_view expected);
// The generic converter lists other backends: every such row says so.
void reword_generic_refusals(RuleSet& rules, std::string_view expected);

// In front of all other rows.
void add_layouts(RuleSet& rules, std::vector<LayoutRow> added);
void drop_layouts(RuleSet& rules, Backend backend);
void drop_layouts(RuleSet& rules, Backend backend, Family family);
// The backend's rows with this condition.
void drop_layouts(RuleSet& rules, Backend backend, const TargetCondition& when);
// The backend's rows with condition `before` get condition `after`.
void replace_condition(RuleSet& rules, Backend backend, const TargetCondition& before,
                       const TargetCondition& after);
// Every row of layout `before` gets layout `after`.
void replace_layout(RuleSet& rules, const Layout& before, const Layout& after);

}  // namespace mxfp4::edit
