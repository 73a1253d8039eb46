// The rules of vllm-2026-08-17 against tables that vLLM 017e9f4448 produced
// (testdata/oracle/newer, see testdata/oracle/README.md).
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "formats/config/quantization_override.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/question.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/oracle_tables.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;
using test::or_null;
using test::read_table;

const RuleSet& newer_rules() { return revision_by_name("vllm-2026-08-17"); }

TEST(OracleNewerGolden, DecisionsMessagesAndTraces) {
  test::expect_decisions(newer_rules(), "newer/decisions.jsonl", 200);
}

// The activation is null where the method does not tell it to the rounding function.
TEST(OracleNewerGolden, RoundUp) {
  const json table = read_table("newer/round_up.json");
  for (const json& row : table.at("rows")) {
    Target target;
    target.platform = platform_from_name(row[0].get<std::string>()).value();
    target.backend = backend_from_name(row[1].get<std::string>()).value();
    target.family = row[2].is_null() ? Family::kGptOss : Family::kGeneric;
    target.activation = row[2].is_null() ? "silu" : row[2].get<std::string>();
    const LayerDims dims = round_up_sizes(newer_rules(), target, {1, row[3], row[4]});
    EXPECT_EQ(dims, (LayerDims{1, row[5], row[6]})) << row;
  }
}

TEST(OracleNewerGolden, All2AllHidden) {
  const std::array<std::string, 4> backends = {"deepep_high_throughput", "deepep_low_latency",
                                               "nixl_ep", "deepep_v2"};
  test::expect_all2all_hidden(newer_rules(), "newer/all2all_hidden.json", backends);
}

TEST(OracleNewerGolden, Parallel) {
  const json table = read_table("newer/parallel.json");
  for (const json& row : table.at("rows")) {
    Deployment deployment;
    deployment.parallel = {.tp_size = row[0],
                           .pcp_size = row[1],
                           .dp_size = row[2],
                           .enable_expert_parallel = row[3],
                           .all2all_backend = row[4],
                           .sequence_parallel = row[5]};
    EXPECT_EQ(test::parallel_answers(make_question(newer_rules(), deployment)),
              json({row[6], row[7], row[8], row[9], row[10]}))
        << row;
  }
}

TEST(OracleNewerGolden, RoutingMethod) {
  const json table = read_table("newer/routing_method.json");
  for (const json& row : table.at("rows")) {
    const std::string scoring = row[0];
    RoutingFacts facts{.scoring = scoring,
                       .top_k = row[1],
                       .renormalize = row[2],
                       .expert_groups = row[3].is_null() ? 0 : row[3].get<int64_t>(),
                       .score_bias = row[4]};
    if (!row[5].is_null()) facts.scaling_factor = row[5].get<double>();
    EXPECT_EQ(derive_routing(newer_rules(), facts), row[6].get<std::string>()) << row;
  }
  test::expect_routing_numbers(newer_rules(), table);
}

TEST(OracleNewerGolden, MoeBackendNames) {
  test::expect_moe_backend_names(newer_rules(), "newer/moe_backend_names.json");
}

TEST(OracleNewerGolden, QuantizationOverride) {
  const json table = read_table("newer/quantization_config.json");
  for (const json& c : table.at("cases")) {
    const std::string quantization = c.at("quantization").is_null() ? "" : c.at("quantization");
    try {
      const auto config = parse_quantization_config(
          newer_rules(), c.at("quantization_config").dump(), quantization);
      ASSERT_FALSE(c.contains("error")) << c;
      EXPECT_EQ(config ? or_null(config->moe_activation()) : json(),
                c.at("moe_activation_override"))
          << c;
    } catch (const Error& error) {
      EXPECT_EQ(c.value("error", json()), error.reference_type_name()) << c;
    }
  }
}

}  // namespace
}  // namespace mxfp4
