#include "lib/revisions/edit.hpp"

#include <mutex>
#include <set>
#include <string>

namespace mxfp4::edit {
namespace {

constexpr std::string_view kGenericRefusal =
    "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.";

// Rows hold views, so text that a release composes is kept once for the life of the process.
std::string_view kept(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(std::move(text)).first;
}

template <class Predicate>
void drop_rows(RuleSet& rules, Backend backend, Predicate also) {
  const auto gone = std::erase_if(
      rules.layouts, [&](const LayoutRow& row) { return row.backend == backend && also(row); });
  if (gone != 0) return;
  throw Error::internal(fmt::format(
      "a release drops layouts of {} that the one before does not have", backend_name(backend)));
}

template <class Predicate, class Change>
void change_rows(RuleSet& rules, Predicate which, Change change) {
  bool found = false;
  for (LayoutRow& row : rules.layouts) {
    if (!which(row)) continue;
    change(row);
    found = true;
  }
  if (!found) throw Error::internal("a release changes layouts that the one before does not have");
}

}  // namespace

Condition& condition(RuleSet& rules, std::string_view expert_class, std::string_view topic) {
  return row(row(rules.classes, expert_class).checks, topic).passes;
}

void rename_class(RuleSet& rules, std::string_view name, std::string_view renamed) {
  row(rules.classes, name).name = renamed;
  for (BackendRow& row : rules.backends) {
    std::ranges::replace(row.classes, name, renamed);
    std::ranges::replace(row.lora_classes, name, renamed);
  }
  for (CallerRow& caller : rules.callers) {
    for (auto* rows : {&caller.direct, &caller.exceptions}) {
      for (DirectRow& row : *rows) {
        if (row.experts_class == name) row.experts_class = renamed;
      }
    }
  }
}

void add_backend_after(RuleSet& rules, Backend after, BackendRow added) {
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    rules.converters.push_back({added.backend, family});
  }
  add_after(rules.backends, after, std::move(added));
}

ConverterRow& converter(RuleSet& rules, Family family, Backend backend) {
  for (ConverterRow& row : rules.converters) {
    if (row.family == family && row.backend == backend) return row;
  }
  throw Error::internal(fmt::format("a release changes {}'s converter of {}, which is not there",
                                    family_name(family), backend_name(backend)));
}

LayoutRow generic_refusal(Backend backend, std::string_view expected) {
  const std::string_view text = kept(
      fmt::format("{}{}. Expected {} backend.", kGenericRefusal, backend_name(backend), expected));
  return {backend, Family::kGeneric, {}, nullptr, text, "ValueError"};
}

void reword_generic_refusals(RuleSet& rules, std::string_view expected) {
  for (LayoutRow& row : rules.layouts) {
    if (row.refusal.starts_with(kGenericRefusal)) row = generic_refusal(row.backend, expected);
  }
}

void add_layouts(RuleSet& rules, std::vector<LayoutRow> added) {
  rules.layouts.insert(rules.layouts.begin(), added.begin(), added.end());
}

void drop_layouts(RuleSet& rules, Backend backend) {
  drop_rows(rules, backend, [](const LayoutRow& /*row*/) { return true; });
}

void drop_layouts(RuleSet& rules, Backend backend, Family family) {
  drop_rows(rules, backend, [&](const LayoutRow& row) { return row.family == family; });
}

void drop_layouts(RuleSet& rules, Backend backend, const TargetCondition& when) {
  drop_rows(rules, backend, [&](const LayoutRow& row) { return row.when.text == when.text; });
}

void replace_condition(RuleSet& rules, Backend backend, const TargetCondition& before,
                       const TargetCondition& after) {
  change_rows(
      rules,
      [&](const LayoutRow& row) { return row.backend == backend && row.when.text == before.text; },
      [&](LayoutRow& row) { row.when = after; });
}

void replace_layout(RuleSet& rules, const Layout& before, const Layout& after) {
  change_rows(
      rules, [&](const LayoutRow& row) { return row.layout == &before; },
      [&](LayoutRow& row) { row.layout = &after; });
}

}  // namespace mxfp4::edit
