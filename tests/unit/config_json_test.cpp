// config.json to plain values, and the quantizations that are refused by name.
#include "formats/config/config_json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "formats/config/packed_config.hpp"
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

TEST(ModelConfig, SituHasALinearPartWhereItsBetaIsTold) {
  json outer = {{"model_type", "kimi_k3"}, {"text_config", compressed()}};
  EXPECT_FALSE(parse_model_config(outer.dump(), "c.json").situ_linear_beta);
  outer["text_config"]["activation_situ_linear_beta"] = nullptr;
  EXPECT_FALSE(parse_model_config(outer.dump(), "c.json").situ_linear_beta);
  outer["text_config"]["activation_situ_linear_beta"] = 25.0;
  EXPECT_TRUE(parse_model_config(outer.dump(), "c.json").situ_linear_beta);
}

TEST(ModelConfig, ACompressionConfigMayOmitItsMethod) {
  json config = compressed();
  config["compression_config"] = config["quantization_config"];
  config.erase("quantization_config");
  config["compression_config"].erase("quant_method");
  EXPECT_EQ(parse_model_config(config.dump(), "c.json").quantization->name, "compressed-tensors");
}

TEST(ModelConfig, TheQuantizationMayStandAlone) {
  const ModelConfig config = parse_model_config(R"({"quant_method": "mxfp4"})", "q.json");
  EXPECT_TRUE(config.quantization_only);
  EXPECT_EQ(config.quantization->name, "mxfp4");
  EXPECT_TRUE(parse_model_config(quark()["quantization_config"].dump(), "q.json").quantization);
}

TEST(ModelConfig, KnowsTheOriginalGptOssForm) {
  const char* text = R"({"num_experts": 4, "rope_ntk_alpha": 1, "hidden_size": 64})";
  EXPECT_TRUE(parse_model_config(text, "c.json").original_gpt_oss);
  EXPECT_FALSE(parse_model_config(model().dump(), "c.json").original_gpt_oss);
}

// As Python reads it, and so the engines do.
TEST(ModelConfig, TakesTheLastOfSeveralEqualKeys) {
  const ModelConfig config = parse_model_config(
      R"({"hidden_size": 64, "text_config": {"num_experts": 2, "num_experts": 4}, "hidden_size": 32})",
      "c.json");
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.num_experts, 4);
}

TEST(ModelConfig, ReadsTheTextModelWhereTheEngineFindsIt) {
  const auto hidden = [](const std::string& text) {
    return parse_model_config(text, "c.json").hidden_size;
  };
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    EXPECT_EQ(hidden(fmt::format(R"({{"hidden_size": 1, "{}": {{"hidden_size": 64}}}})", key)), 64);
  }
  EXPECT_EQ(hidden(R"({"thinker_config": {"text_config": {"hidden_size": 64}}})"), 64);
  EXPECT_EQ(hidden(R"({"talker_config": {"text_config": {"hidden_size": 64}}})"), std::nullopt);
}

TEST(ModelConfig, SpellsMethodsAsTheEngineDoes) {
  for (const auto& [said, read] : std::map<std::string, std::string>{
           {"MXFP4", "mxfp4"}, {"Mxfp4", "mxfp4"}, {"GPT_OSS_MXFP4", "gpt_oss_mxfp4"}}) {
    const std::string text =
        fmt::format(R"({{"quantization_config": {{"quant_method": "{}"}}}})", said);
    EXPECT_EQ(parse_model_config(text, "c.json").quantization->name, read);
  }
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

TEST(ModelConfig, RefusesOtherMethodsByName) {
  for (const char* method : {"gptq", "awq", "modelopt", "fp_quant"}) {
    json config = model();
    config["quantization_config"] = {{"quant_method", method}};
    expect_refusal(config, std::string("quantization_config.quant_method: ") + method);
  }
  json config = model();
  config["quantization_config"] = json::object();
  expect_refusal(config, "quantization_config.quant_method: null");
}

TEST(ModelConfig, LayersAreTypedOneByOne) {
  json config = quark();
  config["num_hidden_layers"] = 4;
  config["mlp_layer_types"] = {"dense", "hash_moe", "dense", "moe", "sparse"};
  const ModelConfig parsed = parse_model_config(config.dump(), "c.json");
  EXPECT_EQ(parsed.moe_layers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(parsed.num_hash_layers, 1);
  config["num_hash_layers"] = 3;
  EXPECT_EQ(parse_model_config(config.dump(), "c.json").num_hash_layers, 3);
}

TEST(ModelConfig, AutoRoundIsMxfp4WhereItSaysSo) {
  json config = model();
  json& quant = config["quantization_config"];
  quant = {{"quant_method", "auto-round"},
           {"bits", 4},
           {"group_size", 32},
           {"data_type", "mx_fp"},
           {"packing_format", "auto_round:llm_compressor"}};
  EXPECT_EQ(parse_model_config(config.dump(), "c.json").quantization->name, "auto-round");
  const auto refused = [&](const char* key, const json& value) {
    json other = config;
    other["quantization_config"][key] = value;
    expect_refusal(other, std::string("quantization_config.") + key);
  };
  refused("bits", 8);
  refused("group_size", 128);
  refused("data_type", "int");
  refused("packing_format", "auto_round:auto_gptq");
}

TEST(ModelConfig, Fp8MeansFp4ExpertsOfDeepseekV4Only) {
  json config = model();
  config["quantization_config"] = {{"quant_method", "fp8"}};
  expect_refusal(config, "quant_method: fp8: a model of type qwen3_moe is quantized as FP8");
  config["model_type"] = "deepseek_v4";
  EXPECT_EQ(parse_model_config(config.dump(), "c.json").quantization->expert_dtype, "fp4");
  config["quantization_config"]["expert_dtype"] = "fp8";
  expect_refusal(config, "expert_dtype: fp8");
  config["expert_dtype"] = "fp4";  // the model's own key is the one that counts
  EXPECT_EQ(config_refusal(config.dump()), "accepted");
  config["expert_dtype"] = "int4";
  expect_refusal(config, "expert_dtype: int4");
  config["expert_dtype"] = "fp4";
  config["quantization_config"]["moe_quant_algo"] = "NVFP4";
  expect_refusal(config, "moe_quant_algo: NVFP4");
}

// The refusal in the global rule, which find_expert_layers applies to the modules that it covers.
std::string global_refusal(const json& config) {
  return parse_model_config(config.dump(), "c.json").quantization->rules.back().refusal;
}

TEST(ModelConfig, QuarkActivations) {
  json config = quark();
  json& input = config["quantization_config"]["global_quant_config"]["input_tensors"];
  const auto activation = [&] {
    return parse_model_config(config.dump(), "c.json").quantization->activation;
  };
  EXPECT_EQ(activation(), "");
  input = {{"dtype", "fp4"}, {"is_dynamic", true}};
  EXPECT_EQ(activation(), "mxfp4");
  EXPECT_EQ(global_refusal(config), "");
  input = {{"dtype", "fp8_e4m3"}, {"is_dynamic", false}};
  EXPECT_EQ(activation(), "fp8_per_tensor_static");
  const auto other = [&] {
    EXPECT_EQ(global_refusal(config), "");  // a matter of the release
    return parse_model_config(config.dump(), "c.json").quantization->other_static;
  };
  EXPECT_TRUE(other());
  input["qscheme"] = "per_tensor";
  EXPECT_TRUE(other());
  input["symmetric"] = true;
  EXPECT_FALSE(other());
  input["qscheme"] = "per_channel";
  EXPECT_TRUE(other());
  input = {{"dtype", "fp6_e3m2"}, {"is_dynamic", true}};
  EXPECT_EQ(activation(), "fp6");
  input = {{"dtype", "fp4"}, {"is_dynamic", false}};
  EXPECT_NE(global_refusal(config).find("input_tensors.is_dynamic: false"), std::string::npos);
  input = {{"dtype", "fp8_e4m3"}, {"is_dynamic", true}};
  EXPECT_NE(global_refusal(config).find("input_tensors.is_dynamic: true"), std::string::npos);
  input = {{"dtype", "int8"}, {"is_dynamic", true}};
  EXPECT_NE(global_refusal(config).find("input_tensors: "), std::string::npos);
  input = json::array({1});
  EXPECT_NE(global_refusal(config).find("input_tensors: [1]"), std::string::npos);
}

TEST(ModelConfig, QuarkWeights) {
  const auto with = [](const std::string& key, const json& value) {
    json config = quark();
    config["quantization_config"]["global_quant_config"]["weight"][key] = value;
    return global_refusal(config);
  };
  EXPECT_EQ(with("dtype", "fp4"), "");
  EXPECT_NE(with("dtype", "fp6_e2m3").find("weight.dtype: fp6_e2m3"), std::string::npos);
  EXPECT_NE(with("qscheme", "per_tensor").find("weight.qscheme"), std::string::npos);
  EXPECT_NE(with("group_size", 16).find("weight.group_size: 16"), std::string::npos);
  EXPECT_NE(with("scale_format", nullptr).find("weight.scale_format: null"), std::string::npos);
  json config = quark();
  json& global = config["quantization_config"]["global_quant_config"];
  global["output_tensors"] = json::object();
  EXPECT_EQ(global_refusal(config), "");
  global["output_tensors"] = {{"dtype", "fp8_e4m3"}};
  EXPECT_NE(global_refusal(config).find("output_tensors: {"), std::string::npos);
  global["weight"] = json::array({1, 2});
  EXPECT_NE(global_refusal(config).find("weight: [1,2]"), std::string::npos);
}

TEST(ModelConfig, QuarkNeedsExportAndAGlobalConfig) {
  json config = quark();
  config["quantization_config"].erase("export");
  expect_refusal(config, "quantization_config.export: null");
  config = quark();
  config["quantization_config"].erase("global_quant_config");
  expect_refusal(config, "quantization_config.global_quant_config: null");
}

TEST(ModelConfig, QuarkLayerRulesKeepTheirOrder) {
  json config = quark();
  std::string text = config.dump();
  const std::string empty = R"("layer_quant_config":{})";
  text.replace(text.find(empty), empty.size(), R"("layer_quant_config":{"z*":{},"a*":{}})");
  const auto rules = parse_model_config(text, "c.json").quantization->rules;
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].pattern, "z*");
  EXPECT_EQ(rules[1].pattern, "a*");
  EXPECT_NE(rules[0].refusal.find("layer_quant_config.z*.weight: null"), std::string::npos);
  EXPECT_EQ(rules[2].refusal, "");
}

TEST(ModelConfig, CompressedTensorsGroups) {
  const auto with = [](const std::string& key, const json& value) {
    json config = compressed();
    config["quantization_config"]["config_groups"]["group_0"]["weights"][key] = value;
    return config;
  };
  EXPECT_EQ(config_refusal(compressed().dump()), "accepted");
  expect_refusal(with("num_bits", 8), "group_0.weights.num_bits: 8");
  expect_refusal(with("type", "int"), "group_0.weights.type: int");
  expect_refusal(with("strategy", "tensor_group"), "weights.strategy: tensor_group");
  expect_refusal(with("group_size", 16), "weights.group_size: 16");
  expect_refusal(with("symmetric", false), "weights.symmetric: false");
  expect_refusal(with("scale_dtype", "torch.float8_e4m3fn"), "weights.scale_dtype");
  // A second group, for something else, does not matter unless it is the experts'.
  json config = compressed();
  json& groups = config["quantization_config"]["config_groups"];
  groups["group_1"] = with("num_bits", 8)["quantization_config"]["config_groups"]["group_0"];
  EXPECT_EQ(config_refusal(config.dump()), "accepted");
  // Names come before classes of modules, in the order of the file.
  groups["group_1"]["targets"] = {"re:.*layers.0.mlp.experts.*", "lm_head"};
  const auto rules = parse_model_config(config.dump(), "c.json").quantization->rules;
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].pattern, ".*layers.0.mlp.experts.*");
  EXPECT_EQ(rules[0].kind, PatternKind::kRegex);
  EXPECT_NE(rules[0].refusal.find("group_1.weights.num_bits: 8"), std::string::npos);
  EXPECT_EQ(rules[1].kind, PatternKind::kName);
  EXPECT_EQ(rules[2].kind, PatternKind::kAny);
  EXPECT_EQ(rules[2].refusal, "");
  // Of one target in two groups the last counts; what is not said is as the engine assumes.
  json& first = groups["group_0"]["weights"];
  first.erase("strategy");
  first.erase("symmetric");
  groups["group_1"]["targets"] = {"RoutedExperts", "Linear"};
  const auto last = parse_model_config(config.dump(), "c.json").quantization;
  ASSERT_EQ(last->rules.size(), 2U);
  EXPECT_EQ(last->rules[0].pattern, "RoutedExperts");
  EXPECT_NE(last->rules[1].refusal.find("group_1.weights.num_bits: 8"), std::string::npos);
  EXPECT_TRUE(last->named_only);
  groups["group_1"]["targets"] = {"re:(?<!x)y"};  // a sign that the matcher lacks
  EXPECT_FALSE(parse_model_config(config.dump(), "c.json").quantization->named_only);
  groups = json::object();
  expect_refusal(config, "config_groups: {}");
}

// The config of a model directory with a blob names another method, and says the same.
TEST(PackedConfig, NamesAMethodThatNoEngineHas) {
  const json config = json::parse(packed_config_text(quark().dump()));
  EXPECT_EQ(config["quantization_config"]["quant_method"], "mxfp4_repack");
  EXPECT_EQ(config["quantization_config"]["mxfp4_repack_quant_method"], "quark");
  json rest = config;
  rest["quantization_config"].erase("mxfp4_repack_quant_method");
  rest["quantization_config"]["quant_method"] = "quark";
  EXPECT_EQ(rest, quark());
  EXPECT_EQ(packed_config_text(config.dump()), config.dump()) << "it was packed before";
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
