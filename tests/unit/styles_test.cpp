// Tensor names and configs to layers, by small hand-made checkpoints.
#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/expert_layer.hpp"
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

TEST(Styles, NamesRoundTrip) {
  for (size_t i = 0; i < kAllStyles.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kAllStyles[i]), i);
    EXPECT_EQ(style_from_name(style_name(kAllStyles[i])), kAllStyles[i]);
  }
  EXPECT_FALSE(style_from_name("awq"));
}

TEST(Styles, StackedExpertsAreExtentsOfOneTensor) {
  const ModelConfig config = quantized_config("mxfp4", "gpt_oss");
  const ModelLayers model = find_expert_layers(stacked(), &config, {});
  ASSERT_EQ(model.layers.size(), 1U);
  const ExpertLayer& layer = model.layers[0];
  EXPECT_EQ(layer.dims, (LayerDims{2, 64, 32}));
  ASSERT_EQ(layer.slot(Slot::kW13Weight).experts.size(), 2U);
  const auto& extents = layer.slot(Slot::kW13Weight).experts[1];
  ASSERT_EQ(extents.size(), 1U);
  EXPECT_EQ(extents[0].tensor, 0U);
  EXPECT_EQ(extents[0].offset, 2048);
  EXPECT_EQ(extents[0].bytes, 2048);
  EXPECT_EQ(layer.slot(Slot::kW2Bias).experts[1][0].offset, 128);
  EXPECT_FALSE(layer.has(Slot::kW13InputScale));
}

TEST(Styles, SeparateTensorsAreGateThenUp) {
  const ModelConfig config = quantized_config("quark", "deepseek_v3");
  const ModelLayers model = find_expert_layers(per_expert(), &config, {});
  const auto& extents = model.layers.at(0).slot(Slot::kW13WeightScale).experts.at(1);
  ASSERT_EQ(extents.size(), 2U);
  EXPECT_EQ(extents[0].tensor, 7U);
  EXPECT_EQ(extents[1].tensor, 9U);
  EXPECT_EQ(extents[1].bytes, 64);
  EXPECT_EQ(model.order, W13Order::kHalves);
  EXPECT_EQ(model.scale_fill, std::byte{1});
}

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

TEST(Styles, TakeWhatTheirLoaderKeeps) {
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

Tensors inkling(bool flat) {
  const std::string module = "model.llm.layers.0.mlp.experts.";
  const auto scales = [flat](int64_t rows, int64_t columns) {
    return TensorSpec{DType::kU8, flat ? Shape{2 * rows, columns} : Shape{2, rows, columns}};
  };
  return {
      {module + "w13_weight", {DType::kU8, {2, 64, 32}}, "a"},
      {module + "w13_weight_scale", scales(64, 2), "a"},
      {module + "w2_weight", {DType::kU8, {2, 64, 16}}, "a"},
      {module + "w2_weight_scale", scales(64, 1), "a"},
  };
}

// The names are those of the loaded layout: the config says that they are the checkpoint's own.
TEST(Styles, InklingsStackedTensorsAreTheCheckpointsOwn) {
  const ModelConfig config = quantized_config("quark", "inkling_mm_model");
  for (const bool flat : {false, true}) {
    const ModelLayers model = find_expert_layers(inkling(flat), &config, {});
    EXPECT_EQ(model.loader, Loader::kInklingStacked);
    EXPECT_EQ(model.order, W13Order::kHalves);
    EXPECT_TRUE(model.alternating);
    EXPECT_EQ(model.flat_scales, flat);
    EXPECT_EQ(model.layers.at(0).dims, (LayerDims{2, 64, 32}));
    EXPECT_EQ(model.layers.at(0).slot(Slot::kW13WeightScale).experts.at(1).at(0).offset, 128);
  }
  const ModelConfig other = quantized_config("quark", "qwen3_moe");
  const FindOptions loaded{.family = Family::kGeneric};
  EXPECT_EQ(find_expert_layers(inkling(false), &other, loaded).style, Style::kLoaded);
  const FindOptions marked{.attributes = {{"family", "gpt_oss"}}};
  EXPECT_EQ(find_expert_layers(inkling(false), &config, marked).style, Style::kLoaded);
}

TEST(Styles, InklingsScalesOfWrongShapesAreRefused) {
  const ModelConfig config = quantized_config("quark", "inkling_model");
  Tensors tensors = inkling(true);
  tensors[1].spec.shape = {64, 4};
  expect_has(refusal_of_layers(tensors, &config), "shape [64, 4] instead of [128, 2]");
}

TEST(Styles, AStandAloneQuantizationLetsTheNamesDecide) {
  ModelConfig config;
  config.file = "q.json";
  config.quantization_only = true;
  config.quantization = Quantization{"mxfp4", "", "", {}};
  EXPECT_EQ(find_expert_layers(stacked(), &config, {}).style, Style::kGptOss);
  EXPECT_EQ(find_expert_layers(per_expert(), &config, {}).style, Style::kMxfp4);
  config.quantization->name = "quark";
  EXPECT_EQ(find_expert_layers(stacked(), &config, {}).loader, Loader::kQuarkStacked);
}

TEST(Styles, GenericMxfp4HasBiasesThatAreNeverFilled) {
  const ModelConfig config = quantized_config("mxfp4", "qwen3_moe");
  const ModelLayers model = find_expert_layers(per_expert(), &config, {});
  EXPECT_EQ(model.family, Family::kGptOss);
  EXPECT_EQ(model.order, W13Order::kHalves);
  ASSERT_TRUE(model.layers.at(0).has(Slot::kW13Bias));
  EXPECT_TRUE(model.layers.at(0).slot(Slot::kW13Bias).experts.at(0).empty());
  ASSERT_EQ(model.warnings.size(), 1U);
  const ModelLayers released =
      find_expert_layers(per_expert(), &config, {.unfilled_biases = false});
  EXPECT_FALSE(released.layers.at(0).has(Slot::kW13Bias));
}

TEST(Styles, BiasesOfGenericLoadersAreLeftWithAWarning) {
  const ModelConfig config = quantized_config("quark", "qwen3_moe");
  Tensors tensors = per_expert();
  tensors.push_back({"model.layers.0.mlp.experts.0.gate_proj.bias", {DType::kBF16, {32}}, "a"});
  const ModelLayers model = find_expert_layers(tensors, &config, {});
  EXPECT_FALSE(model.layers.at(0).has(Slot::kW13Bias));
  EXPECT_EQ(model.rest, std::vector<size_t>{12});
  ASSERT_EQ(model.warnings.size(), 1U);
  expect_has(model.warnings[0], "1 expert bias tensors are not loaded");
}

TEST(Styles, TheLaterInputScaleOfGateAndUpStays) {
  ModelConfig config = quantized_config("quark", "qwen3_moe");
  config.quantization->activation = "fp8_per_tensor_static";
  Tensors tensors = per_expert({.experts = 1});
  const std::string module = "model.layers.0.mlp.experts.0.";
  tensors.push_back({module + "up_proj.input_scale", {DType::kF32, {}}, "a.safetensors"});
  tensors.push_back({module + "gate_proj.input_scale", {DType::kF32, {1}}, "a.safetensors"});
  tensors.push_back({module + "down_proj.input_scale", {DType::kF32, {}}, "a.safetensors"});
  config.num_experts = 1;
  const auto kept = [&] {
    const ModelLayers model = find_expert_layers(tensors, &config, {});
    const auto& extents = model.layers.at(0).slot(Slot::kW13InputScale).experts.at(0);
    EXPECT_EQ(extents.size(), 1U);
    return extents.at(0).tensor;
  };
  EXPECT_EQ(kept(), 6U);  // one file: by name, up after gate
  tensors[7].file = "b.safetensors";
  EXPECT_EQ(kept(), 7U);  // the gate's file comes later
  tensors.pop_back();
  expect_has(refusal_of_layers(tensors, &config), "0.down_proj.input_scale: missing");
}

TEST(Styles, InputScalesWithoutStaticActivationsAreLeft) {
  const ModelConfig config = quantized_config("quark", "qwen3_moe");
  Tensors tensors = per_expert();
  tensors.push_back({"model.layers.0.mlp.experts.0.up_proj.input_scale", {DType::kF32, {}}, "a"});
  const ModelLayers model = find_expert_layers(tensors, &config, {});
  EXPECT_FALSE(model.layers.at(0).has(Slot::kW13InputScale));
  EXPECT_EQ(model.warnings.size(), 1U);
}

TEST(Styles, UnquantizedLayersOfAMixedModelStay) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_nextn_predict_layers = 1;
  Tensors tensors = per_expert();
  for (const char* word : {"gate_proj", "up_proj", "down_proj"}) {
    tensors.push_back({std::string("model.layers.1.mlp.experts.0.") + word + ".weight",
                       {DType::kBF16, {32, 64}},
                       "a"});
  }
  const ModelLayers model = find_expert_layers(tensors, &config, {});
  EXPECT_EQ(model.layers.size(), 1U);
  EXPECT_EQ(model.rest.size(), 3U);
  ASSERT_EQ(model.warnings.size(), 1U);
  expect_has(model.warnings[0], "layer 1 has experts that are not MXFP4");
}

TEST(Styles, DuplicatesAndCollisions) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  Tensors tensors = per_expert();
  tensors.push_back(tensors.front());
  expect_has(refusal_of_layers(tensors, &config), "given twice");
  tensors = per_expert();
  PerExpert{.module = "tower.layers.0.moe.experts"}.add(tensors);
  expect_has(refusal_of_layers(tensors, &config), "layer 0 is both");
}

TEST(Styles, LayersMustAgree) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_hidden_layers = 2;
  config.num_experts.reset();
  Tensors tensors = per_expert();
  PerExpert{.module = "model.layers.1.mlp.experts", .experts = 3}.add(tensors);
  expect_has(refusal_of_layers(tensors, &config),
             "3 experts, hidden size 64, intermediate size 32, but");
}

TEST(Styles, AnOverrideNeedsNoConfig) {
  expect_has(refusal_of_layers(stacked(), nullptr), "config.json: missing");
  EXPECT_EQ(refusal_of_layers(stacked(), nullptr, {.style = Style::kGptOss}), "accepted");
  EXPECT_EQ(refusal_of_layers(stacked(), nullptr, {.style = Style::kQuark}), "accepted");
  expect_has(refusal_of_layers(stacked(), nullptr, {.style = Style::kMxfp4}),
             "style mxfp4: no expert tensors, such as");
  expect_has(refusal_of_layers({}, nullptr), "no MoE expert tensors");
}

}  // namespace
}  // namespace mxfp4
