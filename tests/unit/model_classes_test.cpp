// The program's table of model classes against what was read out of the releases' wheels.
#include "lib/oracle/model_classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "formats/config/config_json.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

// The activations of each architecture in the newest release that has it, as its class writes them.
std::map<std::string, std::set<std::string>> activations_read() {
  std::ifstream file(test::testdata("engines/models.json"));
  const json document = json::parse(file);
  std::map<std::string, std::pair<std::string, std::set<std::string>>> newest;
  for (const json& row : document["models"]) {
    const std::string release = row["releases"].back();
    const std::string activation = row["arguments"].value("activation", "'silu'");
    for (const json& name : row["architectures"]) {
      auto& [version, activations] = newest[name];
      if (version < release) activations.clear();
      if (version <= release) {
        version = release;
        activations.insert(activation);
      }
    }
  }
  std::map<std::string, std::set<std::string>> out;
  for (auto& [name, read] : newest) out[name] = read.second;
  return out;
}

TEST(ModelClasses, AreThoseOfTheWheels) {
  const auto read = activations_read();
  ASSERT_GT(read.size(), 100U);
  EXPECT_EQ(model_classes().size(), read.size());
  for (const auto& [name, activations] : read) {
    const ModelClass* row = find_model_class(name);
    ASSERT_NE(row, nullptr) << name;
    const bool asks = std::ranges::any_of(activations, [](const std::string& text) {
      return text.find("hidden_act") != std::string::npos;
    });
    EXPECT_EQ(row->activation.empty(), asks) << name;
    EXPECT_EQ(row->by_layer, activations.contains("activation")) << name;
    if (asks || row->by_layer) continue;
    EXPECT_EQ(activations, std::set<std::string>{"'" + row->activation + "'"}) << name;
  }
}

std::string config_of(const std::string& architecture, json more = json::object()) {
  more["architectures"] = {architecture};
  return more.dump();
}

TEST(ModelClasses, DecideTheActivation) {
  const auto activation = [](const std::string& text) {
    return parse_model_config(text, "config.json").hidden_act;
  };
  const std::string gemma =
      config_of("Gemma4ForConditionalGeneration",
                {{"text_config", {{"hidden_activation", "gelu_pytorch_tanh"}}}});
  EXPECT_EQ(activation(gemma), "gelu_tanh");
  EXPECT_TRUE(model_class_warnings(gemma).empty());
  EXPECT_EQ(activation(config_of("Qwen3MoeForCausalLM", {{"hidden_act", "gelu"}})), "silu");
  EXPECT_EQ(activation(config_of("KimiK3ForConditionalGeneration", {{"hidden_act", "situ"}})),
            "situ");
  const std::string unknown = config_of("NoSuchModel", {{"hidden_activation", "gelu"}});
  EXPECT_EQ(activation(unknown), "gelu");
  ASSERT_EQ(model_class_warnings(unknown).size(), 1U);
  EXPECT_NE(model_class_warnings(unknown)[0].find("NoSuchModel: a model class that"),
            std::string::npos);
  EXPECT_TRUE(model_class_warnings("{}").empty()) << "no class is named";
  const std::string step =
      config_of("Step3p5ForCausalLM", {{"swiglu_limits", {0, nullptr, 7.0, 7.0}}});
  EXPECT_EQ(activation(step), "silu");
  ASSERT_EQ(model_class_warnings(step).size(), 1U);
  EXPECT_NE(model_class_warnings(step)[0].find("swiglustep in layers 2-3"), std::string::npos);
  // A wrapper that makes no experts itself asks the text model's own class.
  const auto inside = [](const std::string& architecture) {
    return config_of("NoSuchModel", {{"text_config", json::parse(config_of(architecture))}});
  };
  EXPECT_EQ(activation(inside("GptOssForCausalLM")), "swigluoai");
  EXPECT_TRUE(model_class_warnings(inside("GptOssForCausalLM")).empty());
  EXPECT_EQ(model_class_warnings(inside("Neither")).size(), 1U);
  const json limits = {{"swiglu_limits", {0, 7.0}}};
  const std::string wrapped =
      config_of("Step3p7ForConditionalGeneration",
                {{"text_config", json::parse(config_of("Step3p5ForCausalLM", limits))}});
  ASSERT_EQ(model_class_warnings(wrapped).size(), 1U);
  EXPECT_NE(model_class_warnings(wrapped)[0].find("Step3p5ForCausalLM runs swiglustep in layers 1"),
            std::string::npos);
}

}  // namespace
}  // namespace mxfp4
