// Inputs that are in the loaded layout already.
#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/find_layers.hpp"
#include "tests/unit/found_layers.hpp"

namespace mxfp4 {
namespace {

using test::expect_has;
using test::refusal_of_layers;
using Tensors = std::vector<NamedTensor>;

Tensors loaded(const std::string& prefix) {
  return {
      {prefix + ".w13_weight", {DType::kU8, {2, 64, 32}}, "a"},
      {prefix + ".w13_weight_scale", {DType::kU8, {2, 64, 2}}, "a"},
      {prefix + ".w2_weight", {DType::kU8, {2, 64, 16}}, "a"},
      {prefix + ".w2_weight_scale", {DType::kU8, {2, 64, 1}}, "a"},
  };
}

TEST(LoadedStyle, Inputs) {
  Tensors tensors = loaded("layers.3.experts");
  for (auto& t : loaded("layers.0.experts")) tensors.push_back(t);
  tensors.push_back({"layers.3.norm", {DType::kBF16, {64}}, "a"});
  const ModelLayers model = find_expert_layers(
      tensors, nullptr, {.attributes = {{"family", "generic"}, {"num_experts", "2"}}});
  EXPECT_EQ(model.style, Style::kLoaded);
  EXPECT_EQ(model.family, Family::kGeneric);
  EXPECT_EQ(model.order, W13Order::kHalves);
  ASSERT_EQ(model.layers.size(), 2U);
  EXPECT_EQ(model.layers[0].index, 0);
  EXPECT_EQ(model.layers[1].prefix, "layers.3.experts");
  EXPECT_EQ(model.rest, std::vector<size_t>{8});
  EXPECT_TRUE(model.splits_experts);
  EXPECT_FALSE(model.splits_intermediate);  // not stated
}

TEST(LoadedStyle, DraftLayersCountOn) {
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

TEST(LoadedStyle, ScaleFill) {
  FindOptions options{.family = Family::kGptOss};
  EXPECT_EQ(find_expert_layers(loaded("l.0"), nullptr, options).scale_fill, std::byte{0});
  options.attributes["scale_fill"] = "1";
  EXPECT_EQ(find_expert_layers(loaded("l.0"), nullptr, options).scale_fill, std::byte{1});
  options.attributes["scale_fill"] = "256";
  expect_has(refusal_of_layers(loaded("l.0"), nullptr, options),
             "attribute scale_fill: 256 is not a byte");
}

TEST(LoadedStyle, InputsSayTheirFamily) {
  const Tensors tensors = loaded("experts");
  expect_has(refusal_of_layers(tensors, nullptr), "does not say its family");
  const ModelLayers model = find_expert_layers(
      tensors, nullptr,
      {.family = Family::kGptOss,
       .attributes = {
           {"family", "generic"}, {"w13_order", "halves"}, {"intermediate_size", "32"}}});
  EXPECT_EQ(model.family, Family::kGptOss);
  EXPECT_EQ(model.order, W13Order::kHalves);
  EXPECT_EQ(model.layers.at(0).index, 0);
  EXPECT_TRUE(model.splits_intermediate);
  const auto with = [&](const std::string& key, const std::string& value) {
    return refusal_of_layers(tensors, nullptr,
                             {.family = Family::kGptOss, .attributes = {{key, value}}});
  };
  expect_has(with("family", "x"), "accepted");  // the flag decides
  expect_has(with("w13_order", "x"), "attribute w13_order");
  expect_has(with("num_experts", "3"), "attribute num_experts: 3");
  expect_has(with("num_experts", "two"), "attribute num_experts: two is not a size");
  expect_has(with("hidden_size", "128"), "attribute hidden_size: 128");
  expect_has(with("bias_dtype", "F64"), "attribute bias_dtype");
}

TEST(LoadedStyle, Faults) {
  const FindOptions options{.family = Family::kGptOss};
  Tensors tensors = loaded("a.0");
  tensors.erase(tensors.begin() + 1);
  expect_has(refusal_of_layers(tensors, nullptr, options), "a.0.w13_weight_scale: missing");
  tensors = loaded("a.0");
  tensors.push_back({"a.0.w13_bias", {DType::kBF16, {2, 64}}, "a"});
  expect_has(refusal_of_layers(tensors, nullptr, options), "a.0.w2_bias: missing");
  tensors.push_back({"a.0.w2_bias", {DType::kBF16, {2, 65}}, "a"});
  expect_has(refusal_of_layers(tensors, nullptr, options), "shape [2, 65] instead of [2, 64]");
  tensors = loaded("a.0");
  tensors[0].spec.dtype = DType::kF32;
  expect_has(refusal_of_layers(tensors, nullptr, options), "w13_weight cannot be F32");
  tensors = loaded("a.0");
  for (auto& t : loaded("b.0")) tensors.push_back(t);
  expect_has(refusal_of_layers(tensors, nullptr, options),
             "layer 0 is there with another prefix, too");
  tensors = loaded("a.0");
  tensors.push_back(tensors[0]);
  expect_has(refusal_of_layers(tensors, nullptr, options), "given twice");
}

TEST(LoadedStyle, BiasesRoundUnlessToldOtherwise) {
  Tensors tensors = loaded("a.0");
  tensors.push_back({"a.0.w13_bias", {DType::kF32, {2, 64}}, "a"});
  tensors.push_back({"a.0.w2_bias", {DType::kF32, {2, 64}}, "a"});
  FindOptions options{.family = Family::kGptOss};
  ModelLayers model = find_expert_layers(tensors, nullptr, options);
  EXPECT_EQ(model.bias_dtype, DType::kBF16);
  EXPECT_EQ(model.warnings.size(), 1U);
  ModelConfig quark;
  quark.quantization = Quantization{"quark", "", "", {}};
  EXPECT_EQ(find_expert_layers(tensors, &quark, options).bias_dtype, DType::kF32);
  options.attributes["bias_dtype"] = "F32";
  model = find_expert_layers(tensors, nullptr, options);
  EXPECT_EQ(model.bias_dtype, DType::kF32);
  EXPECT_TRUE(model.warnings.empty());
}

TEST(LoadedStyle, SizesOfAConfigAreThoseBeforePadding) {
  ModelConfig config;
  config.file = "config.json";
  config.hidden_size = 32;  // padded to 64
  config.num_experts = 4;   // two of them here
  const FindOptions options{.family = Family::kGptOss};
  EXPECT_EQ(refusal_of_layers(loaded("a.0"), &config, options), "accepted");
  config.hidden_size = 96;
  expect_has(refusal_of_layers(loaded("a.0"), &config, options), "config.json: hidden_size: 96");
  config.hidden_size = 64;
  config.num_experts = 1;
  expect_has(refusal_of_layers(loaded("a.0"), &config, options), "config.json: num_experts: 1");
}

}  // namespace
}  // namespace mxfp4
