// The layout table of every revision: each backend and family has a row, no target has two, and
// rows and layouts say what they must.
#include <gtest/gtest.h>

#include <algorithm>

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
      EXPECT_EQ(row.when.holds == nullptr, row.when.text.empty());
    }
  }
}

TEST(LayoutTable, LayoutsDescribeThemselves) {
  std::set<std::string_view> ids;
  for (const Layout* layout : all_layouts()) {
    SCOPED_TRACE(layout->id);
    EXPECT_FALSE(layout->id.empty());
    EXPECT_TRUE(ids.insert(layout->id).second) << "two layouts have this id";
    EXPECT_EQ(layout_by_id(layout->id), layout);
    for (std::string_view text : {layout->backends, layout->outputs_doc, layout->formula,
                                  layout->preconditions, layout->source}) {
      EXPECT_FALSE(text.empty());
    }
    EXPECT_NE(layout->outputs, nullptr);
  }
}

// The documentation of a layout names every backend whose row points at it.
TEST(LayoutTable, LayoutsNameTheirBackends) {
  for (const LayoutRow& row : revision_by_name("vllm-2026-05-18").layouts) {
    if (row.layout == nullptr) continue;
    EXPECT_NE(row.layout->backends.find(backend_name(row.backend)), std::string_view::npos)
        << row.layout->id << " does not name " << backend_name(row.backend);
  }
}

TEST(LayoutTable, GenericRefusalsUseTheReferenceWords) {
  Target target;
  target.backend = Backend::FLASHINFER_CUTLASS_MXFP4_BF16;
  target.family = Family::kGeneric;
  const LayoutRow* row = find_layout_row(revision_by_name("vllm-2026-05-18"), target);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->layout, nullptr);
  EXPECT_EQ(row->refusal_type, "ValueError");
  EXPECT_EQ(row->refusal,
            "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
            "Mxfp4MoeBackend.FLASHINFER_CUTLASS_MXFP4_BF16. "
            "Expected TRTLLM, Triton, or AITER backend.");
}

}  // namespace
}  // namespace mxfp4::test
