// Which layers a checkpoint has to hold, and their numbers.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "lib/core/error.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/find_layers.hpp"
#include "tests/unit/found_layers.hpp"

namespace mxfp4 {
namespace {

using test::expect_has;
using test::per_expert;
using test::PerExpert;
using test::quantized_config;
using test::refusal_of_layers;
using test::stacked;
using Tensors = std::vector<NamedTensor>;

TEST(LayerNumbers, MissingAndExtraLayers) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_hidden_layers = 3;
  Tensors tensors = per_expert({.module = "model.layers.1.mlp.experts"});
  expect_has(refusal_of_layers(tensors, &config), "layer 0 has no expert tensors");
  tensors.push_back({"model.layers.0.mlp.gate_proj.weight", {DType::kU8, {64, 32}}, "a"});
  expect_has(refusal_of_layers(tensors, &config), "layer 2 has no expert tensors");
  tensors.push_back({"model.layers.2.mlp.gate_proj.weight", {DType::kU8, {64, 32}}, "a"});
  EXPECT_EQ(refusal_of_layers(tensors, &config), "accepted");  // dense, as far as anybody can tell
  config.first_k_dense_replace = 1;
  expect_has(refusal_of_layers(tensors, &config), "layer 2 has no expert tensors");
  config.mlp_only_layers = {2};
  EXPECT_EQ(refusal_of_layers(tensors, &config), "accepted");
  config.num_hidden_layers = 1;
  expect_has(refusal_of_layers(tensors, &config),
             "there are tensors of model.layers.1.mlp.experts");
  config.num_nextn_predict_layers = 1;
  EXPECT_EQ(refusal_of_layers(tensors, &config), "accepted");
}

TEST(LayerNumbers, AbsurdNumbersAreRefusedQuickly) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_hidden_layers = INT64_MAX;
  config.first_k_dense_replace = INT64_MAX;
  expect_has(refusal_of_layers(per_expert(), &config), "num_hidden_layers");
  config = quantized_config("quark", "deepseek_v3");
  config.num_experts = INT64_MAX;
  expect_has(refusal_of_layers(per_expert(), &config), "experts.2.gate_proj.weight: missing");
  config.num_experts.reset();
  Tensors tensors = per_expert();
  tensors[0].name = "model.layers.0.mlp.experts.999999999.gate_proj.weight";
  expect_has(refusal_of_layers(tensors, &config), "expert 999999999 of a layer with 12 tensors");
}

TEST(LayerNumbers, PredictionLayersAreNumberedAfterTheModels) {
  ModelConfig config = quantized_config("fp8", "deepseek_v4");
  config.num_hidden_layers = 1;
  const PerExpert form{
      .module = "layers.0.ffn.experts", .words = {"w1", "w3", "w2"}, .scales = ".scale"};
  Tensors tensors = per_expert(form);
  PerExpert draft = form;
  draft.module = "mtp.1.ffn.experts";
  draft.add(tensors);
  const ModelLayers model = find_expert_layers(tensors, &config, {});
  EXPECT_EQ(model.layers.at(1).index, 2);
  EXPECT_EQ(model.layers.at(1).engine_prefix, "model.layers.2.ffn.experts");
  // DSpark has three stages and says 1.
  config.num_nextn_predict_layers = 1;
  EXPECT_EQ(find_expert_layers(tensors, &config, {}).layers.size(), 2U);
  config.num_hidden_layers.reset();
  expect_has(refusal_of_layers(tensors, &config), "num_hidden_layers: missing");
}

TEST(LayerNumbers, LayerNumbersDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ModelConfig config = quantized_config("fp8", "deepseek_v4");
  config.num_hidden_layers = kMax;
  const PerExpert form{
      .module = "layers.0.ffn.experts", .words = {"w1", "w3", "w2"}, .scales = ".scale"};
  Tensors tensors = per_expert(form);
  PerExpert draft = form;
  draft.module = "mtp.1.ffn.experts";
  draft.add(tensors);
  for (const bool partial : {false, true}) {
    expect_has(refusal_of_layers(tensors, &config, {.partial = partial}),
               "config.json: num_hidden_layers: a sum of sizes overflows");
  }
  config.num_nextn_predict_layers = 1;
  EXPECT_EQ(refusal_of_layers(per_expert(form), &config, {.partial = true}), "accepted");
}

TEST(LayerNumbers, ALargeModelIsQuick) {
  Tensors tensors;
  for (int64_t layer = 0; layer < 61; ++layer) {
    PerExpert{.module = "model.layers." + std::to_string(layer) + ".mlp.experts", .experts = 384}
        .add(tensors);
  }
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_experts = 384;
  config.num_hidden_layers = 61;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(find_expert_layers(tensors, &config, {}).layers.size(), 61U);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 60.0);  // 0.1 s is usual; a quadratic step would take many minutes
  RecordProperty("seconds", std::to_string(taken.count()));
}

// --model-config describes a whole model, the file holds a part of it.
TEST(LayerNumbers, PartOfAModel) {
  ModelConfig config = quantized_config("mxfp4", "gpt_oss");
  config.num_hidden_layers = 3;
  expect_has(refusal_of_layers(stacked(1), &config),
             "num_hidden_layers: 3, but layer 0 has no expert");
  const ModelLayers part = find_expert_layers(stacked(1), &config, {.partial = true});
  ASSERT_EQ(part.layers.size(), 1U);
  EXPECT_EQ(part.layers[0].index, 1);
  ASSERT_EQ(part.warnings.size(), 1U);
  expect_has(part.warnings[0], "3, but 2 of these layers are not here");
  config.num_hidden_layers = INT64_MAX;
  EXPECT_EQ(find_expert_layers(stacked(1), &config, {.partial = true}).warnings.size(), 1U);
  config.num_hidden_layers = 1;
  expect_has(refusal_of_layers(stacked(1), &config, {.partial = true}), "but there are tensors of");
}

}  // namespace
}  // namespace mxfp4
