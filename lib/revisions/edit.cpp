#include "lib/revisions/edit.hpp"

#include <mutex>
#include <set>
#include <string>

namespace mxfp4::edit {
namespace {

template <class Rows, class Value, class Member>
auto& row_with(Rows& rows, const Value& value, Member member, std::string_view what) {
  const auto found = std::ranges::find(rows, value, member);
  if (found == rows.end()) {
    throw Error::internal(fmt::format("a release changes {} that its base does not have", what));
  }
  return *found;
}

// Rows hold views, so text that a release composes is kept once for the life of the process.
std::string_view kept(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(std::move(text)).first;
}

}  // namespace

BackendRow& backend(RuleSet& rules, Backend backend) {
  return row_with(rules.backends, backend, &BackendRow::backend, backend_name(backend));
}

ExpertClass& expert_class(RuleSet& rules, std::string_view name) {
  return row_with(rules.classes, name, &ExpertClass::name, name);
}

AliasRow& alias(RuleSet& rules, std::string_view name) {
  return row_with(rules.aliases, name, &AliasRow::name, name);
}

SelectorRow& selector(RuleSet& rules, Selector selector) {
  return row_with(rules.selectors, selector, &SelectorRow::selector, selector_name(selector));
}

ConverterRow& converter(RuleSet& rules, Family family, Backend backend) {
  for (ConverterRow& row : rules.converters) {
    if (row.family == family && row.backend == backend) return row;
  }
  throw Error::internal("a release changes a converter that its base does not have");
}

Condition& condition(RuleSet& rules, std::string_view name, std::string_view topic) {
  return row_with(expert_class(rules, name).checks, topic, &Check::topic, topic).passes;
}

void add_check_after(ExpertClass& expert_class, std::string_view topic, Check check) {
  Check& before = row_with(expert_class.checks, topic, &Check::topic, topic);
  const auto index = &before - expert_class.checks.data();
  expert_class.checks.insert(expert_class.checks.begin() + index + 1, std::move(check));
}

void remove_package(RuleSet& rules, std::string_view package) {
  remove(rules.packages, package);
  for (StockRow& row : rules.stock_packages) std::erase(row.packages, package);
}

void add_backend_after(RuleSet& rules, Backend after, BackendRow added) {
  const auto index = &backend(rules, after) - rules.backends.data();
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    rules.converters.push_back({added.backend, family});
  }
  rules.backends.insert(rules.backends.begin() + index + 1, std::move(added));
}

void remove_backend(RuleSet& rules, Backend gone) {
  const auto is_gone = [&](const auto& row) { return row.backend == gone; };
  (void)backend(rules, gone);
  std::erase_if(rules.backends, is_gone);
  std::erase_if(rules.converters, is_gone);
  std::erase_if(rules.kernel_settings, is_gone);
  std::erase_if(rules.layouts, is_gone);
}

void add_alias_before(RuleSet& rules, std::string_view before, AliasRow added) {
  const auto index = &alias(rules, before) - rules.aliases.data();
  rules.aliases.insert(rules.aliases.begin() + index, std::move(added));
}

void add_alias_after(RuleSet& rules, std::string_view after, AliasRow added) {
  const auto index = &alias(rules, after) - rules.aliases.data();
  rules.aliases.insert(rules.aliases.begin() + index + 1, std::move(added));
}

LayoutRow generic_refusal(Backend backend, std::string_view expected) {
  const std::string_view text = kept(
      fmt::format("Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.{}. Expected {} "
                  "backend.",
                  backend_name(backend), expected));
  return {backend, Family::kGeneric, {}, nullptr, text, "ValueError"};
}

void add_layouts(RuleSet& rules, std::vector<LayoutRow> added) {
  rules.layouts.insert(rules.layouts.begin(), added.begin(), added.end());
}

void drop_layouts(RuleSet& rules, Backend backend, Family family) {
  std::erase_if(rules.layouts, [&](const LayoutRow& row) {
    return row.backend == backend && row.family == family;
  });
}

void drop_layouts(RuleSet& rules, Backend backend, const TargetCondition& when) {
  std::erase_if(rules.layouts, [&](const LayoutRow& row) {
    return row.backend == backend && row.when.text == when.text;
  });
}

void copy_kernel_settings(RuleSet& rules, Backend like, Backend backend) {
  KernelSettingsRow row =
      row_with(rules.kernel_settings, like, &KernelSettingsRow::backend, backend_name(like));
  row.backend = backend;
  rules.kernel_settings.push_back(row);
}

}  // namespace mxfp4::edit
