// The layout table of every revision: each backend and family has a row, no target has two, and
// rows and layouts say what they must.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "lib/core/error.hpp"
#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

// The first row that matches wins, so a row that no target reaches is a mistake.
TEST(LayoutTable, EveryRowIsReached) {
  for (const RuleSet* rules : all_revisions()) {
    std::set<const LayoutRow*> reached;
    for (Backend backend : all_backends()) {
      for (Family family : {Family::kGptOss, Family::kGeneric}) {
        for (const Target& target : targets_of(backend, family, true)) {
          reached.insert(row_of(*rules, target));
        }
      }
    }
    for (const LayoutRow& row : rules->layouts) {
      EXPECT_TRUE(reached.contains(&row))
          << rules->name << ", row " << &row - rules->layouts.data() << ": "
          << backend_name(row.backend) << " " << row.when.text;
    }
  }
}

TEST(LayoutTable, EveryBackendAndFamilyHasARow) {
  for (const RuleSet* rules : all_revisions()) {
    for (const BackendRow& known : rules->backends) {
      const Backend backend = known.backend;
      for (Family family : {Family::kGptOss, Family::kGeneric}) {
        const auto targets = targets_of(backend, family, true);
        EXPECT_TRUE(std::ranges::any_of(
            targets, [&](const Target& target) { return row_of(*rules, target) != nullptr; }))
            << rules->name << " " << backend_name(backend) << " " << family_name(family);
      }
    }
  }
}

TEST(LayoutTable, RowsHaveALayoutOrARefusal) {
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) {
      SCOPED_TRACE(backend_name(row.backend));
      EXPECT_EQ(row.layout == nullptr, !row.refusal.empty());
      const bool always = row.when.holds == nullptr && row.when.variables.front().name.empty();
      EXPECT_EQ(always, row.when.text.empty());
    }
  }
}

// Else `list variables` would not know them. Knobs have variables of their own.
TEST(LayoutTable, ConditionsAskVariablesByTheirTable) {
  size_t with_variables = 0;
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) {
      if (row.when.holds == nullptr) continue;
      const auto holds = [&](const Target& target) -> std::optional<bool> {
        try {
          return row.when.holds(target);
        } catch (const Error&) {  // of another platform
          return std::nullopt;
        }
      };
      for (Target target : targets_of(row.backend, row.family.value_or(Family::kGeneric), true)) {
        for (const Knob& knob : kKnobs) target.env.erase(std::string(knob.variable));
        if (target.env.empty()) continue;
        ++with_variables;
        const std::optional<bool> with = holds(target);
        target.env.clear();
        EXPECT_EQ(holds(target), with) << rules->name << ": " << row.when.text;
      }
    }
  }
  EXPECT_GT(with_variables, 0U);
}

TEST(LayoutTable, LayoutsDescribeThemselves) {
  std::set<const Layout*> used{nullptr};
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) used.insert(row.layout);
  }
  std::set<std::string_view> ids;
  for (const Layout* layout : all_layouts()) {
    SCOPED_TRACE(layout->id);
    EXPECT_FALSE(layout->id.empty());
    EXPECT_TRUE(ids.insert(layout->id).second) << "two layouts have this id";
    EXPECT_EQ(layout_by_id(layout->id), layout);
    EXPECT_EQ(used.erase(layout), 1U) << "no release has this layout";
    for (std::string_view text :
         {layout->outputs_doc, layout->formula, layout->preconditions, layout->source}) {
      EXPECT_FALSE(text.empty());
    }
    EXPECT_NE(layout->outputs, nullptr);
  }
  EXPECT_EQ(used, std::set<const Layout*>{nullptr}) << "a layout is missing in all_layouts()";
}

}  // namespace
}  // namespace mxfp4::test
