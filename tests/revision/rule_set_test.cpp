// Every revision's rendered tables against committed snapshots (testdata/revision), and what must
// hold of any rule set. After an intended change of a rule:
//   MXFP4_UPDATE_SNAPSHOTS=1 mxfp4_tests --gtest_filter='RuleSet.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/revision/rule_set_text.hpp"

namespace mxfp4 {
namespace {

void expect_snapshot(const std::string& name, const std::string& text) {
  const std::string path = std::string(MXFP4_TESTDATA) + "/revision/" + name;
  if (std::getenv("MXFP4_UPDATE_SNAPSHOTS") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, committed.str()) << path;
}

TEST(RuleSet, RulesEqualTheSnapshot) {
  for (const RuleSet* rules : all_revisions()) {
    expect_snapshot(std::string(rules->name) + ".txt", rule_set_text(*rules));
  }
}

TEST(RuleSet, LayoutRowsEqualTheSnapshot) {
  for (const RuleSet* rules : all_revisions()) {
    expect_snapshot(std::string(rules->name) + "-layouts.txt", layout_rows_text(*rules));
  }
}

// Each backend that any table names has everything that an answer needs.
TEST(RuleSet, EveryBackendIsComplete) {
  for (const RuleSet* rules : all_revisions()) {
    for (const Backend backend : all_backends()) {
      const std::string_view name = backend_name(backend);
      const BackendRow* row = find_backend_row(*rules, backend);
      ASSERT_NE(row, nullptr) << name;
      EXPECT_TRUE(row->key.empty() || find_key_row(*rules, row->key) != nullptr) << name;
      EXPECT_EQ(row->classes.empty(), backend == Backend::NONE) << name;
      for (const Family family : {Family::kGptOss, Family::kGeneric}) {
        EXPECT_NE(find_converter_row(*rules, backend, family), nullptr) << name;
      }
      Deployment deployment;
      EXPECT_NO_THROW((void)quant_settings(*rules, deployment, backend, nullptr, {})) << name;
    }
  }
}

// Tables whose first match wins must match something, whatever is asked.
TEST(RuleSet, FirstMatchTablesAreTotal) {
  for (const RuleSet* rules : all_revisions()) {
    for (const Platform platform :
         {Platform::kCuda, Platform::kRocm, Platform::kXpu, Platform::kCpu, Platform::kOther}) {
      for (const Selector selector : {Selector::kGptOss, Selector::kDeepseekV4}) {
        for (const NumberedName& routing : rules->routing_methods) {
          Deployment d;
          d.platform = platform;
          d.arch = platform == Platform::kCuda   ? "sm70"
                   : platform == Platform::kRocm ? "gfx908"
                                                 : "";
          d.selector = selector;
          d.routing_method = routing.name;
          const Decision decision = select_backend(*rules, d);
          EXPECT_TRUE(decision.backend || !decision.error_message.empty());
        }
      }
    }
  }
}

// Whatever alias is asked for, the answer is a backend of that alias or one of the engine's errors.
TEST(RuleSet, AliasesLeadToTheirOwnCandidates) {
  for (const RuleSet* rules : all_revisions()) {
    for (const AliasRow& alias : rules->aliases) {
      for (const std::string_view arch : {"sm75", "sm90", "sm100", "sm120"}) {
        Deployment d;
        d.platform = Platform::kCuda;
        d.arch = arch;
        d.libs = std::set<std::string>(rules->packages.begin(), rules->packages.end());
        d.moe_backend = alias.name;
        const Decision decision = select_backend(*rules, d);
        if (!decision.backend) {
          EXPECT_FALSE(decision.error_type.empty()) << alias.name;
          continue;
        }
        EXPECT_NE(std::ranges::find(alias.candidates, *decision.backend), alias.candidates.end());
      }
    }
  }
}

TEST(RuleSet, UnknownRevisionNamesTheKnownOnes) {
  try {
    (void)revision_by_name("vllm-1999");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(default_revision().name), std::string::npos);
  }
}

}  // namespace
}  // namespace mxfp4
