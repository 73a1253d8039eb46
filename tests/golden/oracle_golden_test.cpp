// The oracle against tables that the reference produced (testdata/oracle/README.md).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/question.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/oracle_tables.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;
using test::read_table;

const RuleSet& rules() { return revision_by_name("vllm-2026-05-18"); }

// Two commits of vLLM that were executed; the newer one's tables have more columns.
struct Executed {
  const char* revision;
  std::string folder;
  int decisions;  // at least
  std::vector<std::string> rounding_managers;
};

const Executed kExecuted[] = {
    {"vllm-2026-05-18", "", 300, {"deepep_high_throughput", "deepep_low_latency", "nixl_ep"}},
    {"vllm-2026-08-17",
     "newer/",
     200,
     {"deepep_high_throughput", "deepep_low_latency", "nixl_ep", "deepep_v2"}},
};

class OracleGolden : public testing::TestWithParam<Executed> {
 protected:
  const RuleSet& rules_ = revision_by_name(GetParam().revision);
  [[nodiscard]] static std::string path(const char* name) { return GetParam().folder + name; }
  [[nodiscard]] static bool newer() { return !GetParam().folder.empty(); }
};

INSTANTIATE_TEST_SUITE_P(, OracleGolden, testing::ValuesIn(kExecuted), [](const auto& test) {
  return test.param.folder.empty() ? "reference" : "newer";
});

TEST_P(OracleGolden, DecisionsMessagesAndTraces) {
  test::expect_decisions(rules_, path("decisions.jsonl"), GetParam().decisions);
}

// The newer activation is null where the method does not tell it to the rounding function.
TEST_P(OracleGolden, RoundUp) {
  const json table = read_table(path("round_up.json"));
  for (const json& row : table.at("rows")) {
    Target target;
    target.platform = platform_from_name(row[0].get<std::string>()).value();
    target.backend = backend_from_name(row[1].get<std::string>()).value();
    if (newer()) {
      target.family = row[2].is_null() ? Family::kGptOss : Family::kGeneric;
      target.activation = row[2].is_null() ? "silu" : row[2].get<std::string>();
    }
    const size_t at = row.size() - 4;
    const LayerDims dims = round_up_sizes(rules_, target, {1, row[at], row[at + 1]});
    EXPECT_EQ(dims, (LayerDims{1, row[at + 2], row[at + 3]})) << row;
  }
  EXPECT_EQ(table.at("rows").size(), newer() ? 270U : 1955U);
}

TEST_P(OracleGolden, All2AllHidden) {
  test::expect_all2all_hidden(rules_, path("all2all_hidden.json"), GetParam().rounding_managers);
  EXPECT_EQ(round_up_all2all_hidden(rules_, "mori", 2881), 2881);
}

TEST_P(OracleGolden, Parallel) {
  const json table = read_table(path("parallel.json"));
  for (const json& row : table.at("rows")) {
    Deployment deployment;
    deployment.parallel = {.tp_size = row[0],
                           .pcp_size = row[1],
                           .dp_size = row[2],
                           .enable_expert_parallel = row[3],
                           .all2all_backend = row[4]};
    if (newer()) deployment.parallel.sequence_parallel = row[5];
    const size_t at = newer() ? 6 : 5;
    EXPECT_EQ(test::parallel_answers(make_question(rules_, deployment)),
              json({row[at], row[at + 1], row[at + 2], row[at + 3], row[at + 4]}))
        << row;
  }
}

TEST_P(OracleGolden, RoutingMethod) {
  const json table = read_table(path("routing_method.json"));
  for (const json& row : table.at("rows")) {
    const std::string scoring = row[0];
    RoutingFacts facts{.scoring = scoring,
                       .top_k = row[1],
                       .renormalize = row[2],
                       .expert_groups = row[3].is_null() ? 0 : row[3].get<int64_t>(),
                       .score_bias = row[4]};
    if (newer() && !row[5].is_null()) facts.scaling_factor = row[5].get<double>();
    EXPECT_EQ(derive_routing(rules_, facts), row.back().get<std::string>()) << row;
  }
  test::expect_routing_numbers(rules_, table);
}

TEST_P(OracleGolden, MoeBackendNames) {
  test::expect_moe_backend_names(rules_, path("moe_backend_names.json"));
}

TEST(OracleReference, EnumeratorsClassesAndAliases) {
  const json table = read_table("tables.json");
  ASSERT_EQ(rules().backends.size(), table.at("enumerators").size());
  for (size_t i = 0; i < rules().backends.size(); ++i) {
    const BackendRow& row = rules().backends[i];
    const json& want = table.at("enumerators")[i];
    EXPECT_EQ(backend_name(row.backend), want.at("name").get<std::string>());
    EXPECT_EQ(row.value, want.at("value").get<std::string>());
    EXPECT_EQ(row.key.empty() ? json() : json(row.key), want.at("activation"));
    std::vector<std::string_view> classes;
    for (const std::string_view name : row.classes) classes.push_back(name);
    const json& experts = table.at("experts").at(std::string(backend_name(row.backend)));
    if (experts.is_array()) {
      EXPECT_EQ(json(classes), experts);
    } else {
      EXPECT_TRUE(classes.empty());
    }
  }
  EXPECT_EQ(rules().aliases.size(), table.at("map").size());
  for (const AliasRow& row : rules().aliases) {
    std::vector<std::string_view> names;
    for (const Backend backend : row.candidates) names.push_back(backend_name(backend));
    EXPECT_EQ(json(names), table.at("map").at(std::string(row.name))) << row.name;
  }
  EXPECT_EQ(json(std::vector(rules().option_names.begin(), rules().option_names.end())),
            table.at("moe_backend_literal"));
}

TEST(OracleReference, FilterByKey) {
  const json table = read_table("tables.json");
  for (const json& c : table.at("filter_by_activation")) {
    std::vector<Backend> backends;
    for (const json& name : c.at("backends")) {
      backends.push_back(backend_from_name(name.get<std::string>()).value());
    }
    std::optional<std::string> key;
    if (!c.at("activation").is_null()) key = c.at("activation");
    std::vector<std::string_view> got;
    for (const Backend backend : filter_by_key(rules(), backends, key)) {
      got.push_back(backend_name(backend));
    }
    EXPECT_EQ(json(got), c.at("result")) << c;
  }
}

TEST(OracleReference, KeyTexts) {
  const json table = read_table("tables.json");
  for (const auto& [platform, facts] : table.at("per_platform").items()) {
    Deployment deployment;
    // "cuda", "rocm", ..., and "rocm_gfx942".
    const size_t bar = platform.find('_');
    deployment.platform = platform_from_name(platform.substr(0, bar)).value();
    if (deployment.platform == Platform::kCuda) deployment.arch = "sm90";
    if (deployment.platform == Platform::kRocm) {
      deployment.arch = bar == std::string::npos ? "gfx950" : platform.substr(bar + 1);
    }
    const Question question = make_question(rules(), deployment);
    for (const ActivationKeyRow& row : rules().keys) {
      EXPECT_EQ(key_text(question, row.name),
                facts.at("quant_key_str").at(std::string(row.name)).get<std::string>());
    }
    EXPECT_EQ(fill_text("{device}", question), facts.at("device_name").is_null()
                                                   ? "None"
                                                   : facts.at("device_name").get<std::string>());
  }
}

}  // namespace
}  // namespace mxfp4
