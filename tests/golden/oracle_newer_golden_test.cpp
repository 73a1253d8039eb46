// The rules of vllm-2026-08-17 against tables that vLLM 017e9f4448 produced
// (testdata/oracle/newer, see testdata/oracle/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/deployment_json.hpp"
#include "formats/quant_config.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

std::ifstream open_table(const std::string& name) {
  std::ifstream file(std::string(MXFP4_TESTDATA) + "/oracle/newer/" + name);
  EXPECT_TRUE(file) << name;
  return file;
}

json read_table(const std::string& name) {
  std::ifstream file = open_table(name);
  return json::parse(file);
}

const RuleSet& rules() { return revision_by_name("vllm-2026-08-17"); }

TEST(OracleNewerGolden, DecisionsMessagesAndTraces) {
  std::ifstream file = open_table("decisions.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const json c = json::parse(line);
    const Decision decision = select_backend(rules(), parse_deployment(c.at("input").dump()));
    json want = c.at("expect");
    want.erase("stage");
    want["trace"] = c.at("trace");
    EXPECT_EQ(json::parse(decision_json(decision, /*trace=*/true)), want) << "case " << c.at("id");
  }
  EXPECT_GE(count, 200);
}

// The activation is null where the method does not tell it to the rounding function.
TEST(OracleNewerGolden, RoundUp) {
  const json table = read_table("round_up.json");
  for (const json& row : table.at("rows")) {
    Target target;
    target.platform = platform_from_name(row[0].get<std::string>()).value();
    target.backend = backend_from_name(row[1].get<std::string>()).value();
    target.family = row[2].is_null() ? Family::kGptOss : Family::kGeneric;
    target.activation = row[2].is_null() ? "silu" : row[2].get<std::string>();
    const LayerDims dims = round_up_sizes(rules(), target, {1, row[3], row[4]});
    EXPECT_EQ(dims, (LayerDims{1, row[5], row[6]})) << row;
  }
}

TEST(OracleNewerGolden, All2AllHidden) {
  const std::array<std::string, 4> backends = {"deepep_high_throughput", "deepep_low_latency",
                                               "nixl_ep", "deepep_v2"};
  const json table = read_table("all2all_hidden.json");
  for (const json& row : table.at("rows")) {
    for (size_t i = 0; i < backends.size(); ++i) {
      json got;
      try {
        got = round_up_all2all_hidden(rules(), backends[i], row[0]);
      } catch (const Error& error) {
        got = error.what();
      }
      EXPECT_EQ(got, row[i + 1]) << backends[i] << " " << row;
    }
  }
}

TEST(OracleNewerGolden, Parallel) {
  const json table = read_table("parallel.json");
  for (const json& row : table.at("rows")) {
    Deployment deployment;
    deployment.parallel = {.tp_size = row[0],
                           .pcp_size = row[1],
                           .dp_size = row[2],
                           .enable_expert_parallel = row[3],
                           .all2all_backend = row[4],
                           .sequence_parallel = row[5]};
    const Question q = make_question(rules(), deployment);
    const json got = {q.parallel.tp_size, q.parallel.ep_size, q.parallel.use_ep, q.uses_all2all,
                      q.batched};
    EXPECT_EQ(got, json({row[6], row[7], row[8], row[9], row[10]})) << row;
  }
}

TEST(OracleNewerGolden, RoutingMethod) {
  const json table = read_table("routing_method.json");
  for (const json& row : table.at("rows")) {
    const std::string scoring = row[0];
    RoutingFacts facts{.scoring = scoring,
                       .top_k = row[1],
                       .renormalize = row[2],
                       .expert_groups = row[3].is_null() ? 0 : row[3].get<int64_t>(),
                       .score_bias = row[4]};
    if (!row[5].is_null()) facts.scaling_factor = row[5].get<double>();
    EXPECT_EQ(derive_routing(rules(), facts), row[6].get<std::string>()) << row;
  }
  for (const auto& [name, number] : table.at("values").items()) {
    const auto found =
        std::ranges::find(rules().routing_methods, std::string_view(name), &NumberedName::name);
    ASSERT_NE(found, rules().routing_methods.end()) << name;
    EXPECT_EQ(found->number, number.get<int>());
  }
}

TEST(OracleNewerGolden, MoeBackendNames) {
  const json table = read_table("moe_backend_names.json");
  for (const json& c : table.at("cases")) {
    const auto name = moe_backend_option(rules(), c.at("input").get<std::string>());
    EXPECT_EQ(name ? json(*name) : json(), c.value("normalized", json())) << c;
  }
}

TEST(OracleNewerGolden, QuantizationConfig) {
  const json table = read_table("quantization_config.json");
  for (const json& c : table.at("cases")) {
    const std::string quantization = c.at("quantization").is_null() ? "" : c.at("quantization");
    try {
      const auto config =
          parse_quantization_config(rules(), c.at("quantization_config").dump(), quantization);
      ASSERT_FALSE(c.contains("error")) << c;
      const auto key = config ? config->moe_activation() : std::nullopt;
      EXPECT_EQ(key ? json(*key) : json(), c.at("moe_activation_override")) << c;
    } catch (const Error& error) {
      EXPECT_EQ(c.value("error", json()), error.reference_type_name()) << c;
    }
  }
}

}  // namespace
}  // namespace mxfp4
