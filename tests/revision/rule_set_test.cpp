// Every revision's rendered tables against committed snapshots (testdata/revision), and what must
// hold of any rule set. After an intended change of a rule:
//   MXFP4_UPDATE_SNAPSHOTS=1 mxfp4_tests --gtest_filter='RuleSet.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/revision/rule_set_text.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

void expect_snapshot(const std::string& name, const std::string& text) {
  const std::string path = (test::testdata("revision") / name).string();
  if (std::getenv("MXFP4_UPDATE_SNAPSHOTS") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, committed.str()) << path;
}

// The first revision's snapshot holds its text; that of each later one holds the lines that it
// changes in the text of the one before.
void expect_release_snapshot(const Release& release, std::string_view suffix,
                             std::string (*text)(const RuleSet&)) {
  const std::string whole = text(rules_of(release));
  const Release* before = release_before(release);
  if (before == nullptr) {
    return expect_snapshot(fmt::format("{}{}.txt", release.name, suffix), whole);
  }
  expect_snapshot(fmt::format("{}{}.diff", release.name, suffix),
                  changed_lines(text(rules_of(*before)), whole));
}

TEST(RuleSet, RulesEqualTheSnapshot) {
  for (const Release* release : all_releases()) {
    expect_release_snapshot(*release, "", rule_set_text);
  }
}

TEST(RuleSet, LayoutRowsEqualTheSnapshot) {
  for (const Release* release : all_releases()) {
    expect_release_snapshot(*release, "-layouts", layout_rows_text);
  }
}

TEST(RuleSet, ReleasesAreFoundByNumber) {
  for (const std::string_view name : {"0.33.0", "v0.33.0", "vllm-0.33.0", "0.33", "0.33.0+cu129",
                                      "v0.33.0-cu130", "0.33.0-x86_64", "v0.33.0-aarch64-cu129"}) {
    const Release* release = find_release(name);
    ASSERT_NE(release, nullptr) << name;
    EXPECT_EQ(release->version(), "0.33.0");
  }
  EXPECT_EQ(find_release("0.3"), nullptr);
  EXPECT_EQ(find_release("0.33.0-rc1"), nullptr);
  for (const Release* release : all_releases()) {
    const std::string commit(release->commit);
    if (commit.empty()) continue;
    for (const std::string& name : {commit, commit.substr(0, 7), commit + "0123"}) {
      EXPECT_EQ(find_release(name), release) << name;
      EXPECT_FALSE(is_newer_release(name)) << name;
    }
    EXPECT_EQ(find_release(commit.substr(0, 6)), nullptr) << commit;
  }
  EXPECT_EQ(find_release(""), nullptr);
  EXPECT_EQ(find_release("v2026-05-18"), nullptr);
  EXPECT_EQ(nearest_release("0.31.7").version(), "0.31.0");
  EXPECT_EQ(nearest_release("9.0").name, newest_release().name);
  EXPECT_EQ(nearest_release("nightly").name, newest_release().name);
  EXPECT_EQ(nearest_release("0.1.0").name, nearest_release("v0.2.0").name);
}

// Each backend that any table names has everything that an answer needs.
TEST(RuleSet, EveryBackendIsComplete) {
  for (const RuleSet* rules : all_revisions()) {
    for (const BackendRow& row : rules->backends) {
      const Backend backend = row.backend;
      const std::string name = fmt::format("{} {}", rules->name, backend_name(backend));
      EXPECT_TRUE(row.key.empty() || find_key_row(*rules, row.key) != nullptr) << name;
      EXPECT_EQ(row.classes.empty(), backend == Backend::NONE) << name;
      for (const std::string_view expert_class : row.classes) {
        EXPECT_NE(find_class(*rules, expert_class), nullptr) << name << expert_class;
      }
      for (const Family family : {Family::kGptOss, Family::kGeneric}) {
        EXPECT_NE(find_converter_row(*rules, backend, family), nullptr) << name;
      }
    }
  }
}

// A class that a release adds and no backend tries, or that it forgets to remove, is a mistake.
TEST(RuleSet, EveryClassIsTriedByABackend) {
  for (const RuleSet* rules : all_revisions()) {
    for (const ExpertClass& row : rules->classes) {
      EXPECT_TRUE(
          std::ranges::any_of(rules->backends,
                              [&](const BackendRow& backend) {
                                const auto names = [&](const std::vector<std::string_view>& list) {
                                  return std::ranges::find(list, row.name) != list.end();
                                };
                                return names(backend.classes) || names(backend.lora_classes);
                              }))
          << rules->name << " " << row.name;
    }
  }
}

// Tables whose first match wins must match something, whatever is asked.
TEST(RuleSet, FirstMatchTablesAreTotal) {
  for (const RuleSet* rules : all_revisions()) {
    if (rules->selectors.empty()) continue;  // no oracle: method classes choose by themselves
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
    if (rules->selectors.empty()) continue;
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

// An engine without an oracle answers every question about every method class, whatever is named.
TEST(RuleSet, MethodClassesWithoutAnOracleAlwaysAnswer) {
  for (const Release* release : releases_of(Engine::kSglang)) {
    const RuleSet& rules = rules_of(*release);
    for (const CallerRow& caller : rules.callers) {
      for (const std::string_view arch : {"sm75", "sm80", "sm90", "sm100", "sm110", "sm120",
                                          "gfx942", "gfx950", "x86_64", "x86_64-amx"}) {
        for (const std::string_view name : rules.option_names) {
          for (const int64_t ranks : {1, 8}) {
            DeploymentFacts facts;
            facts.arch = std::string(arch);
            facts.moe_backend = std::string(name);
            facts.tp_size = ranks;
            facts.enable_expert_parallel = ranks > 1;
            const Deployment deployment = resolve_deployment(rules, facts, &caller, nullptr);
            const Decision decision = decide(rules, deployment, {.caller = &caller});
            EXPECT_TRUE(decision.backend || !decision.error_message.empty())
                << rules.name << " " << caller.text << " " << arch << " " << name;
            if (!decision.backend) continue;
            const Target target = make_target(deployment, decision, caller.family);
            EXPECT_NE(find_layout_row(rules, target), nullptr)
                << rules.name << " " << backend_name(*decision.backend) << " " << arch;
          }
        }
      }
    }
  }
}

TEST(RuleSet, SglangReleasesAreFoundByTheirWholeNames) {
  ASSERT_NE(find_release("sglang-0.5.23"), nullptr);
  EXPECT_EQ(find_release("sglang-0.5.23")->engine(), Engine::kSglang);
  EXPECT_EQ(find_release("0.5.23"), nullptr);
  EXPECT_EQ(find_release("sglang-0.33.0"), nullptr);
  EXPECT_EQ(nearest_release("sglang-0.5.21").name, "sglang-0.5.20");
  EXPECT_TRUE(is_newer_release("sglang-0.6.0"));
  EXPECT_FALSE(is_newer_release("sglang-0.5.1"));
  EXPECT_EQ(release_before(*releases_of(Engine::kSglang).front()), nullptr);
}

// A number behind the newest known one's, also by what follows the number, is a newer release; a
// candidate and a build of it is none, and neither is what nobody ever released.
TEST(RuleSet, NewerReleasesAreKnownByTheirNumbers) {
  for (const Engine engine : {Engine::kVllm, Engine::kSglang}) {
    const std::string newest(newest_release(engine).version());
    const std::string first = engine == Engine::kVllm ? "" : "sglang-";
    for (const char* more : {".post1", ".post12+cu129", ".1", ".1rc2"}) {
      EXPECT_TRUE(is_newer_release(first + newest + more)) << newest << more;
    }
    for (const char* more : {"", "+cu129", "rc1", ".dev5", ".rc1", "a", "-1", "."}) {
      EXPECT_FALSE(is_newer_release(first + newest + more)) << newest << more;
    }
    const std::string before(releases_of(engine)[1]->version());
    EXPECT_FALSE(is_newer_release(first + before + ".post1"));
    EXPECT_TRUE(is_newer_release(first + "99999999999999999999.0"));
    EXPECT_TRUE(is_newer_release(first + "2027.1"));
    EXPECT_FALSE(is_newer_release(first + "2027-01-01"));
    for (const char* other : {"main", "33", "3f2a1bc", "1234abcd", "1e5"}) {
      EXPECT_FALSE(is_newer_release(first + other)) << other;
    }
  }
}

// A deployment has these packages where only the machine is known.
TEST(RuleSet, StockPackagesAreKnown) {
  for (const RuleSet* rules : all_revisions()) {
    for (const StockRow& row : rules->stock_packages) {
      for (const std::string_view package : row.packages) {
        EXPECT_TRUE(is_package(*rules, package)) << rules->name << ": " << package;
      }
    }
  }
}

}  // namespace
}  // namespace mxfp4
