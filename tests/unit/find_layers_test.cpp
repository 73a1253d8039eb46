// Layers found among tensors: types that a style takes, drafts, absurd numbers, many tensors.
#include "lib/load/find_layers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "lib/core/dtype.hpp"
#include "tests/unit/found_layers.hpp"

namespace mxfp4 {
namespace {

using test::expect_has;
using test::per_expert;
using test::PerExpert;
using test::quantized_config;
using test::refusal_of_layers;
using Tensors = std::vector<NamedTensor>;

// Of DeepSeek-V4's names, or of the others' in a model of this method.
Tensors typed(bool deepseek, DType codes, DType scales, const char* suffix = ".weight") {
  PerExpert form;
  form.module = deepseek ? "layers.0.ffn.experts" : form.module;
  if (deepseek) form.words = {"w1", "w3", "w2"};
  form.codes = suffix;
  form.scales = deepseek ? ".scale" : ".weight_scale";
  form.code_type = codes;
  form.scale_type = scales;
  return per_expert(form);
}

TEST(FindLayers, StylesTakeWhatTheirLoaderKeeps) {
  const ModelConfig v4 = quantized_config("deepseek_v4_fp8", "deepseek_v4");
  const ModelConfig mxfp4 = quantized_config("mxfp4", "qwen3_moe");
  const ModelConfig packed = quantized_config("compressed-tensors", "qwen3_moe");
  using enum DType;
  const FindOptions older{.encodes_scales = false};
  const ModelLayers model = find_expert_layers(typed(true, kI8, kF8E8M0), &v4, older);
  EXPECT_EQ(model.layers.at(0).engine_prefix, "model.layers.0.ffn.experts");
  const ModelLayers floats = find_expert_layers(typed(false, kU8, kF32), &mxfp4, {});
  EXPECT_EQ(floats.layers.at(0).slot(Slot::kW2WeightScale).dtype, kF32);
  EXPECT_NO_THROW((void)find_expert_layers(typed(false, kU8, kF8E8M0), &mxfp4, {}));
  expect_has(refusal_of_layers(typed(true, kF4, kF8E8M0), &v4), "must be one of U8, I8, found F4");
  expect_has(refusal_of_layers(typed(false, kU8, kF8E8M0), &mxfp4, older),
             "must be U8, found F8_E8M0");
  expect_has(refusal_of_layers(typed(false, kU8, kF32), &mxfp4, older), "must be U8, found F32");
  expect_has(refusal_of_layers(typed(false, kU8, kF8E8M0, ".weight_packed"), &packed),
             "must be U8, found F8_E8M0");
}

Tensors loaded(const std::string& prefix) {
  return {
      {prefix + ".w13_weight", {DType::kU8, {2, 64, 32}}, "a"},
      {prefix + ".w13_weight_scale", {DType::kU8, {2, 64, 2}}, "a"},
      {prefix + ".w2_weight", {DType::kU8, {2, 64, 16}}, "a"},
      {prefix + ".w2_weight_scale", {DType::kU8, {2, 64, 1}}, "a"},
  };
}

TEST(FindLayers, DraftLayersOfALoadedInputCountOn) {
  Tensors tensors = loaded("mtp.0.ffn.experts");
  for (auto& t : loaded("layers.0.ffn.experts")) tensors.push_back(t);
  for (auto& t : loaded("layers.1.ffn.experts")) tensors.push_back(t);
  FindOptions options{.family = Family::kGeneric};
  const ModelLayers model = find_expert_layers(tensors, nullptr, options);
  EXPECT_EQ(model.layers.at(2).index, 2);
  EXPECT_EQ(model.layers.at(2).prefix, "mtp.0.ffn.experts");
  ModelConfig config;
  config.num_hidden_layers = 61;
  EXPECT_EQ(find_expert_layers(tensors, &config, options).layers.at(2).index, 61);
}

TEST(FindLayers, AbsurdNumbersAreRefusedQuickly) {
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

// A quadratic step would take many minutes; 0.1 s is usual.
TEST(FindLayers, ALargeModelIsQuick) {
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
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace mxfp4
