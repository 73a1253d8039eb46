#include "lib/revisions/revisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/revisions/rule_sets.hpp"

namespace mxfp4 {
namespace {

const std::array kRevisions = {&kRules20260518, &kRules20260817};

std::vector<const Layout*> collect_layouts() {
  std::vector<const Layout*> layouts;
  for (const RuleSet* rules : kRevisions) {
    for (const LayoutRow& row : rules->layouts) {
      if (row.layout != nullptr) layouts.push_back(row.layout);
    }
  }
  std::ranges::sort(layouts, {}, &Layout::id);
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

}  // namespace

std::span<const RuleSet* const> all_revisions() { return kRevisions; }

const RuleSet& default_revision() { return *kRevisions.front(); }

const RuleSet& revision_by_name(std::string_view name) {
  std::string known;
  for (const RuleSet* rules : kRevisions) {
    if (rules->name == name) return *rules;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", rules->name);
  }
  throw Error::usage(fmt::format("unknown revision '{}'; known: {}", name, known));
}

std::span<const Layout* const> all_layouts() {
  static const std::vector<const Layout*> kLayouts = collect_layouts();
  return kLayouts;
}

const Layout* layout_by_id(std::string_view id) {
  for (const Layout* layout : all_layouts()) {
    if (layout->id == id) return layout;
  }
  return nullptr;
}

}  // namespace mxfp4
