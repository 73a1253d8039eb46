// Rules of a quantization for single modules, and the patterns that name modules.
#include "lib/load/module_rules.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "lib/load/find_layers.hpp"
#include "tests/unit/found_layers.hpp"

namespace mxfp4 {
namespace {

using test::expect_has;
using test::per_expert;
using test::PerExpert;
using test::quantized_config;
using test::refusal_of_layers;
using Tensors = std::vector<NamedTensor>;

TEST(ModuleRules, QuarkRulesDecideByModule) {
  ModelConfig config = quantized_config("quark", "deepseek_v3");
  config.num_hidden_layers = 2;
  config.quantization->rules = {{"*.layers.1.*", "", "rule: fp8"}, {"*", "mxfp4", ""}};
  Tensors tensors = per_expert();
  PerExpert{.module = "model.layers.1.mlp.experts"}.add(tensors);
  const ModelLayers model = find_expert_layers(tensors, &config, {});
  EXPECT_EQ(model.layers.size(), 1U);
  EXPECT_EQ(model.activation, "mxfp4");
  // A name without a star stands for the experts within it.
  config.quantization->rules = {{"model.layers.1.mlp.experts.0.gate_proj", "", "rule: fp8"},
                                {"experts", "", "rule: other"},
                                {"*", "mxfp4", ""}};
  EXPECT_EQ(find_expert_layers(tensors, &config, {}).layers.size(), 1U);
  config.quantization->rules = {{"*.layers.1.*", "", ""}, {"*", "mxfp4", ""}};
  expect_has(refusal_of_layers(tensors, &config), "activations quantized as none, but those of");
  config.quantization->rules[0].refusal = "rule: activations";
  config.quantization->rules[0].mxfp4_weights = true;
  EXPECT_EQ(refusal_of_layers(tensors, &config), "config.json: rule: activations");
  config.quantization->rules = {{"*", "", "rule: fp8"}};
  EXPECT_EQ(refusal_of_layers(tensors, &config), "config.json: rule: fp8");
}

TEST(ModuleRules, NamesAreThoseOfTheModelsClass) {
  Quantization quantization;
  constexpr std::array<Rename, 2> kRenames = {
      {{"thinker.model.", "language_model.model."}, {"model.", "language_model.model."}}};
  quantization.renames = kRenames;
  quantization.checkpoint_block = "block_sparse_moe";
  quantization.engine_block = "mlp";
  EXPECT_EQ(engine_name(quantization, "model.layers.1.block_sparse_moe.experts"),
            "language_model.model.layers.1.mlp.experts");
  EXPECT_EQ(renamed(kRenames, "thinker.model.layers.1.block_sparse_moe.experts"),
            "language_model.model.layers.1.block_sparse_moe.experts");
  quantization.excluded.modules = {{"language_model.model.layers.1.mlp.experts", {1, true}}};
  EXPECT_TRUE(is_excluded(quantization, 1, "thinker.model.layers.1.mlp.experts", ""));
  EXPECT_FALSE(is_excluded(quantization, 1, "llm.layers.1.mlp.experts", ""));
}

TEST(ModuleRules, WordsThatTargetsDoNotNameAreThoseOfEachModule) {
  Quantization quantization;
  quantization.named_only = true;
  quantization.rules = {{"any.where.199.experts.0.w1", "", "", PatternKind::kName},
                        {".*\\.3\\.experts\\..*", "", "", PatternKind::kRegex}};
  const auto words = [&](std::string_view module) { return unnamed_words(quantization, module); };
  EXPECT_EQ(words("any.where.199.experts"), std::vector<std::string_view>{"gate_proj"});
  EXPECT_TRUE(words("any.where.3.experts").empty());
  EXPECT_TRUE(words("any.where.4.experts").empty()) << "left out, not named otherwise";
  quantization.named_only = false;
  EXPECT_TRUE(words("any.where.199.experts").empty());
}

TEST(ModuleRules, GlobsMatchAsFnmatch) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a*c", "abbc"));
  EXPECT_FALSE(glob_match("a*c", "abbd"));
  EXPECT_TRUE(glob_match("*.layers.?.mlp*", "model.layers.3.mlp.experts"));
  EXPECT_TRUE(glob_match("l[0-3]x", "l2x"));
  EXPECT_FALSE(glob_match("l[!0-3]x", "l2x"));
  EXPECT_TRUE(glob_match("l[]]x", "l]x"));
  EXPECT_TRUE(glob_match("l[x", "l[x"));
  EXPECT_FALSE(glob_match("abc", "ab"));
  EXPECT_FALSE(glob_match("ab", "abc"));
}

TEST(ModuleRules, ExpressionsMatchABeginning) {
  const std::string name = "model.layers.12.mlp.experts.0.gate_proj";
  EXPECT_TRUE(regex_match_start(".*experts.*", name));
  EXPECT_TRUE(regex_match_start("model\\.layers\\.1[0-3]\\.", name));
  EXPECT_FALSE(regex_match_start("layers", name));
  EXPECT_FALSE(regex_match_start("^(?!.*experts).*$", name));
  EXPECT_TRUE(regex_match_start("^(?!.*self_attn).*$", name));
  EXPECT_FALSE(regex_match_start("(", name));
  EXPECT_TRUE(regex_match_start("m{1}odel\\.layers\\.\\d{1,2}\\.", name));
  EXPECT_FALSE(regex_match_start("\\w{6,}", name));
  for (const char* large : {"m{65}", "(m{9}){9}", "m{1000000000000}", "m{1", "m{x}", "m{,}"}) {
    EXPECT_FALSE(regex_readable(large)) << large;
  }
  EXPECT_FALSE(regex_match_start(std::string(600, '.'), name));
  EXPECT_FALSE(regex_match_start("(m|mo|o)*(m|mo|o)*(m|mo|o)*(m|mo|o)*x", std::string(500, 'm')));
}

}  // namespace
}  // namespace mxfp4
