// Tensor parallel sizes with which the engine cannot start, by the heads of a config.
#include <gtest/gtest.h>

#include "formats/config/config_json.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/revision/rules_of_vllm.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kGptOss =
    R"({"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}, )";

// The notes after which the engine stops, at every release.
std::vector<std::string> stops(const std::string& heads, int64_t tp_size) {
  const ModelConfig config = parse_model_config(kGptOss + heads + "}", "config.json");
  std::vector<std::string> found;
  for (const RuleSet* rules : test::rules_of_vllm()) {
    const CallerRow* caller = find_caller(*rules, config);
    DeploymentFacts facts;
    facts.arch = "sm90";
    facts.tp_size = tp_size;
    const Deployment deployment = resolve_deployment(*rules, facts, caller, &config);
    const Decision decision = decide(*rules, deployment, {.caller = caller});
    std::vector<std::string> here;
    for (const LoadNote& note : load_notes(*rules, deployment, {.caller = caller}, decision)) {
      if (note.stops) here.push_back(note.text);
    }
    if (rules == test::rules_of_vllm().front()) found = here;
    EXPECT_EQ(here, found) << rules->name;
  }
  return found;
}

TEST(AttentionHeads, MustBeDivisible) {
  const std::string heads = R"("num_attention_heads": 64, "num_key_value_heads": 8)";
  for (const int64_t tp : {1, 2, 4, 8, 16, 32, 64}) EXPECT_TRUE(stops(heads, tp).empty()) << tp;
  EXPECT_EQ(stops(heads, 6).front(),
            "64 attention heads are not divisible by 6 tensor parallel ranks: start-up stops with "
            "ValueError");
}

TEST(AttentionHeads, KvHeadsDivideRanksOrRanksDivideThem) {
  EXPECT_EQ(stops(R"("num_attention_heads": 96, "num_key_value_heads": 8)", 12),
            std::vector<std::string>{"8 KV heads and 12 tensor parallel ranks: neither divides the "
                                     "other, and loading stops with AssertionError"});
  EXPECT_TRUE(
      stops(R"("num_attention_heads": 96, "num_key_value_heads": 8, "kv_lora_rank": 512)", 12)
          .empty());
}

TEST(AttentionHeads, NothingFollowsFromWhatIsNotANumber) {
  EXPECT_TRUE(stops(R"("num_attention_heads": [64, 32], "num_key_value_heads": null)", 6).empty());
  EXPECT_TRUE(stops(R"("head_dim": 64)", 6).empty());
}

}  // namespace
}  // namespace mxfp4
