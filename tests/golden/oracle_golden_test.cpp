// The oracle against tables that the reference produced (testdata/oracle/README.md).
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

const RuleSet& rules() { return revision_by_name("vllm-2026-05-18"); }

TEST(OracleGolden, DecisionsMessagesAndTraces) {
  test::expect_decisions(rules(), "decisions.jsonl", 300);
}

TEST(OracleGolden, RoundUp) {
  const json table = read_table("round_up.json");
  for (const json& row : table.at("rows")) {
    Target target;
    target.platform = platform_from_name(row[0].get<std::string>()).value();
    target.backend = backend_from_name(row[1].get<std::string>()).value();
    const LayerDims dims = round_up_sizes(rules(), target, {1, row[2], row[3]});
    EXPECT_EQ(dims, (LayerDims{1, row[4], row[5]})) << row;
  }
  EXPECT_EQ(table.at("rows").size(), 1955);
}

TEST(OracleGolden, All2AllHidden) {
  const std::array<std::string, 3> backends = {"deepep_high_throughput", "deepep_low_latency",
                                               "nixl_ep"};
  test::expect_all2all_hidden(rules(), "all2all_hidden.json", backends);
  EXPECT_EQ(round_up_all2all_hidden(rules(), "mori", 2881), 2881);
}

TEST(OracleGolden, Parallel) {
  const json table = read_table("parallel.json");
  for (const json& row : table.at("rows")) {
    Deployment deployment;
    deployment.parallel = {.tp_size = row[0],
                           .pcp_size = row[1],
                           .dp_size = row[2],
                           .enable_expert_parallel = row[3],
                           .all2all_backend = row[4]};
    EXPECT_EQ(test::parallel_answers(make_question(rules(), deployment)),
              json({row[5], row[6], row[7], row[8], row[9]}))
        << row;
  }
}

TEST(OracleGolden, RoutingMethod) {
  const json table = read_table("routing_method.json");
  for (const json& row : table.at("rows")) {
    const std::string scoring = row[0];
    const RoutingFacts facts{.scoring = scoring,
                             .top_k = row[1],
                             .renormalize = row[2],
                             .expert_groups = row[3].is_null() ? 0 : row[3].get<int64_t>(),
                             .score_bias = row[4]};
    EXPECT_EQ(derive_routing(rules(), facts), row[5].get<std::string>()) << row;
  }
  test::expect_routing_numbers(rules(), table);
}

TEST(OracleGolden, MoeBackendNames) {
  test::expect_moe_backend_names(rules(), "moe_backend_names.json");
}

json spec_json(const std::optional<OverrideSpec>& spec) {
  if (!spec) return {};
  return {{"weight", or_null(spec->weight)}, {"activation", or_null(spec->activation)}};
}

TEST(OracleGolden, QuantizationOverride) {
  const json table = read_table("quantization_config.json");
  for (const json& c : table.at("cases")) {
    const std::string quantization = c.at("quantization").is_null() ? "" : c.at("quantization");
    json got = {{"quantization", c.at("quantization")},
                {"quantization_config", c.at("quantization_config")}};
    try {
      const auto config =
          parse_quantization_config(rules(), c.at("quantization_config").dump(), quantization);
      got["resolved"] = nullptr;
      if (config) {
        got["resolved"] = {{"linear", spec_json(config->linear)},
                           {"moe", spec_json(config->moe)},
                           {"ignore", config->ignore}};
      }
      got["moe_activation_override"] = config ? or_null(config->moe_activation()) : json();
    } catch (const Error& error) {
      got["error"] = error.reference_type_name();
      // This program's message names key and value first.
      const json& want = c.value("message", json());
      const std::string theirs = want.is_array() ? want.at(0) : want;
      EXPECT_TRUE(std::string_view(error.what()).ends_with(theirs)) << error.what();
      got["message"] = want;
    }
    EXPECT_EQ(test::difference_text(got, c), "")
        << "testdata/oracle/quantization_config.json: " << c;
  }
  EXPECT_GE(table.at("cases").size(), 100);
}

json activation_json(const KernelSettings& s, const json& scale) {
  return {{"dtype", s.activation_dtype.empty() ? json() : json(s.activation_dtype)},
          {"shape", or_null(s.activation_shape)},
          {"scale", s.takes_input_scales ? scale : json()},
          {"alpha_or_gscale", nullptr},
          {"zp", nullptr},
          {"bias", nullptr}};
}

TEST(OracleGolden, QuantConfig) {
  const std::map<std::string, std::string> methods = {{"gpt_oss", "GptOssMxfp4MoEMethod"},
                                                      {"deepseek_v4", "Mxfp4MoEMethod"},
                                                      {"quark", "QuarkOCP_MX_MoEMethod"}};
  const json table = read_table("quant_config.json");
  Deployment deployment;
  deployment.platform = Platform::kCuda;
  deployment.arch = "sm90";
  for (const json& c : table.at("cases")) {
    const auto caller = std::ranges::find(
        rules().callers, std::string_view(methods.at(c.at("caller"))), &CallerRow::method);
    ASSERT_NE(caller, rules().callers.end());
    const Backend backend = backend_from_name(c.at("backend").get<std::string>()).value();
    const KernelSettings s = kernel_settings(rules(), deployment, backend, &*caller, 10.0).value();
    EXPECT_EQ(s.needs_layer, c.contains("error")) << c;
    if (s.needs_layer) continue;
    // The other callers have no input scales to give.
    const bool scales = c.at("caller") == "quark";
    SCOPED_TRACE("testdata/oracle/quant_config.json: " + c.dump());
    EXPECT_EQ(test::difference_text(activation_json(s, scales ? json("A1") : json()), c.at("a1")),
              "");
    EXPECT_EQ(test::difference_text(activation_json(s, scales ? json("A2") : json()), c.at("a2")),
              "");
    EXPECT_EQ(s.scale_swizzled, c.at("is_scale_swizzled").get<bool>());
    EXPECT_EQ(s.mx_alignment, c.at("mx_alignment").get<int64_t>());
    EXPECT_EQ(or_null(s.alpha), c.at("gemm1_alpha"));
    EXPECT_EQ(or_null(s.beta), c.at("gemm1_beta"));
    EXPECT_EQ(or_null(s.clamp_limit), c.at("gemm1_clamp_limit"));
    EXPECT_EQ(or_null(s.block_shape), c.at("block_shape"));
  }
}

TEST(OracleGolden, EnumeratorsClassesAndAliases) {
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

TEST(OracleGolden, FilterByKey) {
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

TEST(OracleGolden, KeyTexts) {
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
