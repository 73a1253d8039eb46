// The recipe: its canonical text, and that it has everything that bytes depend on and nothing else.
#include "lib/plan/recipe.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/core/dtype.hpp"

namespace mxfp4 {
namespace {

Recipe usual() {
  Recipe recipe;
  recipe.layout = "marlin/w4a16";
  recipe.parameters = {{"params_dtype", "bfloat16"}};
  recipe.experts = {0, 1, 2, 3, 8, 16, 17};
  recipe.hidden_size = 2880;
  recipe.intermediate_begin = 1440;
  recipe.intermediate_end = 2880;
  recipe.padded_hidden_size = 3072;
  recipe.padded_intermediate_size = 1536;
  recipe.hidden_fill = std::byte{0};
  recipe.intermediate_fill = std::byte{127};
  recipe.bias = DType::kBF16;
  return recipe;
}

TEST(Recipe, TextIsCanonical) {
  EXPECT_EQ(recipe_text(usual()),
            "weights: mxfp4: 2 codes a byte, e8m0 scales of 32\n"
            "layout: marlin/w4a16\n"
            "params_dtype: bfloat16\n"
            "experts: 0-3,8,16-17\n"
            "hidden size: 2880\n"
            "padded hidden size: 3072\n"
            "intermediate rows: [1440, 2880)\n"
            "padded intermediate size: 1536\n"
            "w13 rows: interleaved\n"
            "scale padding of the hidden size: 0\n"
            "scale padding of the intermediate size: 127\n"
            "biases: BF16, w2's zero\n"
            "input scales: no\n");
}

TEST(Recipe, EveryMemberIsInTheTextAndIsNamedAsTheDifference) {
  const struct {
    RecipeDifference difference;
    std::function<void(Recipe&)> change;
  } changes[] = {
      {{"weights", "mxfp4: 2 codes a byte, e8m0 scales of 32",
        "mxfp4: 2 codes a byte, e8m0 scales of 16"},
       [](Recipe& r) { r.weights.block = 16; }},
      {{"layout", "marlin/w4a16", "loaded"}, [](Recipe& r) { r.layout = kLoadedLayoutId; }},
      {{"params_dtype", "bfloat16", "float16"},
       [](Recipe& r) { r.parameters.begin()->second = "float16"; }},
      {{"experts", "0-3,8,16-17", "4"}, [](Recipe& r) { r.experts = {4}; }},
      {{"hidden size", "2880", "2944"}, [](Recipe& r) { r.hidden_size = 2944; }},
      {{"padded hidden size", "3072", "2944"}, [](Recipe& r) { r.padded_hidden_size = 2944; }},
      {{"intermediate rows", "[1440, 2880)", "[0, 2880)"},
       [](Recipe& r) { r.intermediate_begin = 0; }},
      {{"intermediate rows", "[1440, 2880)", "[1440, 2048)"},
       [](Recipe& r) { r.intermediate_end = 2048; }},
      {{"padded intermediate size", "1536", "1472"},
       [](Recipe& r) { r.padded_intermediate_size = 1472; }},
      {{"w13 rows", "interleaved", "halves"}, [](Recipe& r) { r.order = W13Order::kHalves; }},
      {{"scale padding of the hidden size", "0", "none"}, [](Recipe& r) { r.hidden_fill.reset(); }},
      {{"scale padding of the intermediate size", "127", "0"},
       [](Recipe& r) { r.intermediate_fill = std::byte{0}; }},
      {{"biases", "BF16, w2's zero", "none"}, [](Recipe& r) { r.bias.reset(); }},
      {{"biases", "BF16, w2's zero", "BF16"}, [](Recipe& r) { r.w2_bias = true; }},
      {{"input scales", "no", "yes"}, [](Recipe& r) { r.input_scales = true; }},
  };
  for (const auto& each : changes) {
    Recipe other = usual();
    each.change(other);
    EXPECT_NE(other, usual()) << each.difference.what;
    EXPECT_NE(recipe_text(other), recipe_text(usual())) << each.difference.what;
    EXPECT_EQ(recipe_difference(usual(), other), each.difference);
  }
  EXPECT_EQ(recipe_difference(usual(), usual()), std::nullopt);
}

}  // namespace
}  // namespace mxfp4
