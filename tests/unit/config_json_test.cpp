// config.json to plain values, and a packed one. What quantizations say: tests/cli/config_keys.py, against the wheels.
#include "formats/config/config_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/json/packed_config.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

std::string config_refusal(const std::string& text) {
  try {
    (void)parse_model_config(text, "c.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const json& config, const std::string& part) {
  const std::string message = config_refusal(config.dump());
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.rfind("c.json: ", 0), 0U) << message;
}

json model() {
  return json::parse(R"({"model_type": "qwen3_moe", "hidden_size": 64, "moe_intermediate_size": 32,
    "intermediate_size": 96, "num_experts": 8, "num_hidden_layers": 2})");
}

json quark() {
  json config = model();
  config["quantization_config"] = json::parse(R"({"quant_method": "quark", "export": {},
    "layer_quant_config": {}, "global_quant_config": {
      "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"},
      "input_tensors": null, "output_tensors": null, "bias": null}})");
  return config;
}

json compressed() {
  json config = model();
  config["quantization_config"] = json::parse(R"({"quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float",
      "strategy": "group", "group_size": 32, "symmetric": true}}}})");
  return config;
}

TEST(ModelConfig, ReadsSizesUnderTheirManyNames) {
  const ModelConfig config = parse_model_config(quark().dump(), "c.json");
  EXPECT_EQ(config.file, "c.json");
  EXPECT_EQ(config.model_type, "qwen3_moe");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 32);
  EXPECT_EQ(config.intermediate_size_key, "moe_intermediate_size");
  EXPECT_EQ(config.num_experts, 8);
  EXPECT_EQ(config.num_hidden_layers, 2);
  EXPECT_FALSE(config.n_group);
  json other = model();
  other.erase("moe_intermediate_size");
  other["n_routed_experts"] = 4;
  other["first_k_dense_replace"] = 1;
  other["mlp_only_layers"] = {3, 5};
  const ModelConfig second = parse_model_config(other.dump(), "c.json");
  EXPECT_EQ(second.intermediate_size, 96);
  EXPECT_EQ(second.num_experts_key, "n_routed_experts");
  EXPECT_EQ(second.first_k_dense_replace, 1);
  EXPECT_EQ(second.mlp_only_layers, (std::vector<int64_t>{3, 5}));
  EXPECT_FALSE(second.quantization);
}

TEST(ModelConfig, TextConfigComesFirst) {
  json outer = {{"model_type", "kimi_k3"}, {"hidden_size", 7}};
  outer["text_config"] = compressed();
  const ModelConfig config = parse_model_config(outer.dump(), "c.json");
  EXPECT_EQ(config.model_type, "kimi_k3");
  EXPECT_EQ(config.hidden_size, 64);
  ASSERT_TRUE(config.quantization);
  EXPECT_EQ(config.quantization->name, "compressed-tensors");
}

TEST(ModelConfig, TheOuterTypeComesFirst) {
  const auto half = [](const char* text) {
    return parse_model_config(text, "c.json").half_precision;
  };
  EXPECT_TRUE(half(R"({"hidden_size": 64, "torch_dtype": "float16"})"));
  EXPECT_TRUE(half(R"({"text_config": {"hidden_size": 64, "dtype": "float16"}})"));
  EXPECT_TRUE(
      half(R"({"dtype": "float16", "text_config": {"hidden_size": 64, "dtype": "bfloat16"}})"));
  EXPECT_FALSE(
      half(R"({"dtype": "bfloat16", "text_config": {"hidden_size": 64, "dtype": "float16"}})"));
}

TEST(ModelConfig, KnowsConstantsInPlaceOfExperts) {
  const auto replaced = [](const char* text) {
    return parse_model_config(text, "c.json").replaced_experts;
  };
  EXPECT_TRUE(replaced(R"({"hidden_size": 64, "approximate_experts": {"0": [1]}})"));
  EXPECT_TRUE(replaced(R"({"hidden_size": 64, "compression_config": {"quant_method": "mxfp4",
    "transform_config": {"expert_substitution": {"layers": {}}}}})"));
  EXPECT_FALSE(replaced(R"({"hidden_size": 64, "approximate_experts": {}})"));
}

TEST(ModelConfig, KnowsTheOriginalGptOssForm) {
  const char* text = R"({"num_experts": 4, "rope_ntk_alpha": 1, "hidden_size": 64})";
  EXPECT_TRUE(parse_model_config(text, "c.json").original_gpt_oss);
  EXPECT_FALSE(parse_model_config(model().dump(), "c.json").original_gpt_oss);
}

TEST(ModelConfig, RefusesWhatIsNotAConfig) {
  EXPECT_NE(config_refusal("{").find("c.json: not JSON"), std::string::npos);
  EXPECT_NE(config_refusal("[]").find("expected a JSON object, found array"), std::string::npos);
  EXPECT_NE(config_refusal("{\"a\": \"\xff\"}").find("not UTF-8"), std::string::npos);
  EXPECT_NE(config_refusal(std::string(100000, '[')).find("c.json: "), std::string::npos);
  for (const char* value : {"-1", "1.5", "\"64\"", "{}", "true", "18446744073709551615"}) {
    const std::string text = std::string(R"({"hidden_size": )") + value + "}";
    EXPECT_NE(config_refusal(text).find("c.json: hidden_size: "), std::string::npos) << text;
  }
  EXPECT_NE(config_refusal(R"({"hidden_act": 3})").find("hidden_act: expected a string"),
            std::string::npos);
}

TEST(PackedConfig, IsFoundWhereEnginesLook) {
  json nested = {{"text_config", quark()}};
  json renamed = quark();
  renamed["compression_config"] = renamed["quantization_config"];
  renamed.erase("quantization_config");
  for (const json& config : {nested, renamed}) {
    const std::string packed = packed_config_text(config.dump());
    EXPECT_NE(packed.find("mxfp4_repack"), std::string::npos) << packed;
    const ModelConfig again = parse_model_config(packed, "c.json");
    ASSERT_TRUE(again.quantization);
    EXPECT_EQ(again.quantization->name, "quark");
  }
  const json none = json::parse(packed_config_text(model().dump()));
  EXPECT_EQ(none["quantization_config"], json({{"quant_method", "mxfp4_repack"}}));
  EXPECT_FALSE(parse_model_config(none.dump(), "c.json").quantization);
}

TEST(PackedConfig, IsRefusedWithoutTheCheckpointsMethod) {
  json config = quark();
  config["quantization_config"]["quant_method"] = "mxfp4_repack";
  expect_refusal(config, "quantization_config.quant_method: mxfp4_repack");
  config["quantization_config"]["mxfp4_repack_quant_method"] = 4;
  expect_refusal(config, "quantization_config.mxfp4_repack_quant_method: expected a string");
}

}  // namespace
}  // namespace mxfp4
