// What releases themselves did with the types of activations that checkpoints and users state:
// testdata/engines/activations.json, made by tests/engines/activations.py. Each row is asked of
// this program's rules for every release in which it came out so.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/config/config_json.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/question.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::json;

const Json& executed() {
  static const Json kData = [] {
    std::ifstream file(test::testdata("engines/activations.json"));
    return Json::parse(file);
  }();
  return kData;
}

// The machine of a row, which serves a generic model with the platform's usual packages.
DeploymentFacts facts_of(const std::string& platform, const std::string& arch) {
  DeploymentFacts facts;
  facts.platform = platform_from_name(platform);
  if (!arch.empty()) facts.arch = arch;
  facts.activation = "silu";
  facts.routing_method = "Renormalize";
  return facts;
}

void expect_method(const RuleSet& rules, const Json& row, const ModelConfig& config) {
  const CallerRow* caller = find_caller(rules, config);
  ASSERT_NE(caller, nullptr);
  EXPECT_EQ(caller->method, row["method"].get<std::string>());
  const Deployment deployment =
      resolve_deployment(rules, facts_of(row["platform"], row["arch"]), caller, &config);
  const Decision decision = decide(rules, deployment, {.caller = caller});
  if (!decision
           .backend) {  // only its constructor was executed: loading stops without Marlin's repack
    EXPECT_EQ(row["platform"], "rocm");
    EXPECT_EQ(row["experts_class"], "MarlinExperts");
    EXPECT_EQ(decision.error_type, "AttributeError");
    return;
  }
  EXPECT_EQ(decision.experts_class, row["experts_class"].get<std::string>());
  // The engine's own attribute stays MARLIN for the class that it takes in CUTLASS's place.
  const bool cutlass = row["experts_class"] == "CutlassExpertsMxfp4";
  EXPECT_EQ(backend_name(*decision.backend),
            cutlass ? "CUTLASS_MXFP4_MXFP4" : row["backend"].get<std::string>());
  if (!caller->model_activation.empty()) {
    EXPECT_EQ(key_text(make_question(rules, deployment), caller->model_activation),
              row["activation_key"].get<std::string>());
  }
  EXPECT_EQ(caller->input_dtype.empty(), row["activation_key"] == "None");
}

TEST(Activations, CompressedTensorsGetTheMethodThatTheReleaseGaveThem) {
  size_t compared = 0;
  for (const Json& row : executed()["methods"]) {
    const std::string config =
        executed()["quantizations"][row["quantization"].get<size_t>()].dump();
    for (const std::string release : row["releases"]) {
      SCOPED_TRACE(testing::Message() << release << " " << row << " " << config);
      if (row.contains("error")) continue;  // the release stops, and says so itself
      expect_method(revision_by_name(release), row, parse_model_config(config, "c.json"));
      ++compared;
    }
  }
  EXPECT_GE(compared, 600U);
}

// The caller of a checkpoint that states this key to the generic method; null: none can.
const CallerRow* caller_of(const RuleSet& rules, const Json& row) {
  if (row["checkpoint"].is_null()) {
    const bool gpt_oss = row["family"] == "gpt_oss";
    return usual_caller(rules, gpt_oss ? Selector::kGptOss : Selector::kDeepseekV4,
                        gpt_oss ? Family::kGptOss : Family::kGeneric);
  }
  for (const CallerRow& caller : rules.callers) {
    if (caller.model_activation == row["checkpoint"].get<std::string>() &&
        caller.selector == Selector::kDeepseekV4) {
      return &caller;
    }
  }
  return nullptr;
}

void expect_input(const RuleSet& rules, const Json& row, const CallerRow& caller) {
  Deployment deployment;
  deployment.platform = Platform::kCuda;
  deployment.arch = row["arch"];
  deployment.env = row["env"].get<std::map<std::string, std::string>>();
  if (!row["user"].is_null()) deployment.activation_override = row["user"].get<std::string>();
  Target target;
  target.backend = Backend::HUMMING;
  target.family = caller.family;
  target.arch = deployment.arch;
  const std::optional<InputDtype> given = input_dtype(rules, deployment, &caller, target);
  if (!given) {
    EXPECT_TRUE(row.contains("input") && row["input"].is_null());
    EXPECT_TRUE(rules.input_dtypes.empty());
  } else if (!deployment.env.empty()) {
    EXPECT_FALSE(given->value) << "the variable decides";
  } else if (row.contains("error")) {
    EXPECT_NE(given->value, "none");  // loading stops: there are no bytes
  } else {
    ASSERT_TRUE(given->value);
    EXPECT_EQ(*given->value == "none", row["input"].is_null());
    if (row["input"].is_null()) return;
    // What Humming makes of a key: the variants by key in testdata/engines/layouts.json.
    static const std::map<std::string, std::string> kTypes = {
        {"fp8_per_token", "float8e4m3"},
        {"mxfp8", "float8e4m3"},
        {"fp8_per_block_dynamic", "float8e4m3-group128"},
        {"mxfp4", "float4e2m1"},
        {"int8_per_group_32", "int8"}};
    const std::string key = row["input"];
    EXPECT_EQ(*given->value, kTypes.contains(key) ? kTypes.at(key) : key);
  }
}

TEST(Activations, HummingIsToldWhatTheReleaseTellsIt) {
  size_t compared = 0;
  for (const Json& row : executed()["humming"]) {
    for (const std::string release : row["releases"]) {
      SCOPED_TRACE(testing::Message() << release << " " << row);
      const RuleSet& rules = revision_by_name(release);
      const CallerRow* caller = caller_of(rules, row);
      if (caller == nullptr) continue;  // no checkpoint states MXFP8 to this method
      expect_input(rules, row, *caller);
      ++compared;
    }
  }
  EXPECT_GE(compared, 400U);
}

TEST(Activations, WhatALoadedInputDoesNotSayIsNotKnown) {
  Target target;
  target.backend = Backend::HUMMING;
  target.family = Family::kGeneric;
  for (const char* release : {"0.32.0", "0.33.0"}) {
    const auto given = input_dtype(revision_by_name(release), {}, nullptr, target);
    ASSERT_TRUE(given);
    EXPECT_FALSE(given->value);
  }
  target.family = Family::kGptOss;
  EXPECT_EQ(input_dtype(revision_by_name("0.33.0"), {}, nullptr, target)->value, "none");
  for (const char* release : {"0.23.0", "0.31.0"}) {
    EXPECT_EQ(input_dtype(revision_by_name(release), {}, nullptr, target)->value, "none");
  }
  EXPECT_FALSE(input_dtype(revision_by_name("0.22.1"), {}, nullptr, target));
}

}  // namespace
}  // namespace mxfp4
