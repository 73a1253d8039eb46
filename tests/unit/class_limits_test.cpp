// What model classes cannot do, by release and platform, as the table from the wheels has it.
#include "lib/revisions/class_limits.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "lib/revisions/class_table.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

ClassLimits limits_of(const char* release, const char* architecture,
                      Platform platform = Platform::kCuda, const char* method = "mxfp4") {
  ModelConfig config;
  config.architectures = {architecture};
  config.quantization.emplace().name = method;
  return class_limits(revision_by_name(release), config, platform);
}

// A release that the program does not know would hide its rows.
TEST(ClassLimits, EveryRowIsOfARelease) {
  std::istringstream words{std::string(kClassTable)};
  size_t rows = 0;
  for (std::string word; words >> word;) {
    if (word.front() != '@') continue;
    std::string platforms;
    std::string letters;
    words >> platforms >> letters;
    EXPECT_NE(find_release("vllm-" + word.substr(1)), nullptr) << word;
    EXPECT_EQ(letters.find_first_not_of("lestpq-"), std::string::npos) << letters;
    ++rows;
  }
  EXPECT_GT(rows, 50U);
}

TEST(ClassLimits, FollowReleaseAndPlatform) {
  EXPECT_FALSE(limits_of("0.33.0", "MiniMaxM2ForCausalLM").redundant_experts);
  EXPECT_FALSE(limits_of("0.33.0", "MiniMaxM2ForCausalLM").few_experts);
  EXPECT_TRUE(limits_of("0.33.0", "Qwen3MoeForCausalLM").redundant_experts);
  EXPECT_FALSE(limits_of("0.33.0", "KimiK3ForConditionalGeneration").lora);
  EXPECT_TRUE(limits_of("0.33.0", "DeepseekV4ForCausalLM").lora);
  // Where adapters are on gpt-oss's class leaves the experts' inputs whole.
  EXPECT_TRUE(limits_of("0.24.0", "GptOssForCausalLM").splits_inputs);
  EXPECT_FALSE(limits_of("0.25.0", "GptOssForCausalLM").splits_inputs);
  EXPECT_FALSE(limits_of("0.28.0", "DeepseekV4ForCausalLM").lora);
  EXPECT_FALSE(limits_of("0.33.0", "DeepseekV4ForCausalLM", Platform::kRocm).lora);
  EXPECT_FALSE(limits_of("0.33.0", "Glm5NextForCausalLM", Platform::kXpu).starts);
  EXPECT_TRUE(limits_of("0.33.0", "Glm5NextForCausalLM").starts);
  EXPECT_FALSE(limits_of("0.33.0", "Qwen3MoeForCausalLM", Platform::kXpu, "quark").quantization);
  EXPECT_TRUE(limits_of("0.33.0", "Qwen3MoeForCausalLM", Platform::kRocm, "quark").quantization);
}

TEST(ClassLimits, TakeTheClassThatServesTheTask) {
  EXPECT_FALSE(limits_of("0.33.0", "GptOssForSequenceClassification").redundant_experts);
  EXPECT_TRUE(limits_of("0.33.0", "OfAPlugin").redundant_experts);
  EXPECT_TRUE(limits_of("sglang-0.5.23", "MiniMaxM2ForCausalLM").redundant_experts);
}

}  // namespace
}  // namespace mxfp4
