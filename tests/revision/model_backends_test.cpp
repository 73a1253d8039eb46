// Models that take a kernel without the oracle: which, in which release, and what they ask for.
#include "lib/oracle/model_backends.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/revision/rules_of_vllm.hpp"

namespace mxfp4 {
namespace {

// DeepSeek-V4 on eight GPUs of capability 10.0, with mega MoE.
Deployment mega() {
  Deployment d;
  d.platform = Platform::kCuda;
  d.arch = "sm100";
  d.selector = Selector::kDeepseekV4;
  d.moe_backend = "deep_gemm_mega_moe";
  d.activation = "silu";
  d.routing_method = "DeepseekV4";
  d.model_type = "deepseek_v4";
  d.scoring_func = "sqrtsoftplus";
  d.num_experts = 256;
  d.hidden_size = 4096;
  d.intermediate_size = 2048;
  d.parallel.tp_size = 8;
  d.parallel.enable_expert_parallel = true;
  return d;
}

Decision decide_at(std::string_view release, const Deployment& deployment) {
  return decide(revision_by_name(release), deployment, {});
}

TEST(ModelBackends, EveryReleaseServesDeepseekV4) {
  for (const RuleSet* rules : test::rules_of_vllm()) {
    const Decision decision = decide(*rules, mega(), {});
    EXPECT_EQ(decision.backend, Backend::DEEP_GEMM_MEGA_MOE)
        << rules->name << decision.error_message;
    EXPECT_TRUE(decision.direct) << rules->name;
    const Target target = make_target(mega(), decision, Family::kGeneric);
    ASSERT_NE(find_layout_row(*rules, target), nullptr) << rules->name;
    EXPECT_EQ(find_layout_row(*rules, target)->layout, &kDeepgemmMegaMoeLayout) << rules->name;
  }
}

TEST(ModelBackends, ModelsComeWithReleases) {
  const auto asks = [](std::string_view release, std::string_view model, std::string_view name) {
    const auto models = models_that_ask(revision_by_name(release), name);
    return std::ranges::find(models, model) != models.end();
  };
  constexpr std::string_view kMega = "deep_gemm_mega_moe";
  EXPECT_FALSE(asks("0.26.0", "kimi_k3", kMega));
  EXPECT_TRUE(asks("0.27.0", "kimi_k3", kMega));
  EXPECT_FALSE(asks("0.29.0", "deepseek_v41", kMega));
  EXPECT_TRUE(asks("0.30.0", "deepseek_v41", kMega));
  EXPECT_FALSE(asks("0.31.0", "deepseek_v4", "aiter_mega_moe"));
  EXPECT_TRUE(asks("0.32.0", "deepseek_v4", "aiter_mega_moe"));
  for (const RuleSet* rules : test::rules_of_vllm()) {
    EXPECT_TRUE(models_that_ask(*rules, "deep_gemm_amxf4_mega_moe").empty()) << rules->name;
    EXPECT_FALSE(asks(rules->name, "gpt_oss", kMega)) << rules->name;
  }
}

// Only this release pads, and only DeepSeek's classes.
TEST(ModelBackends, Release030RoundsTheIntermediateSize) {
  for (const RuleSet* rules : test::rules_of_vllm()) {
    Deployment d = mega();
    for (const std::string_view activation : {"silu", "situ"}) {
      d.activation = activation;
      Target target;
      target.backend = Backend::DEEP_GEMM_MEGA_MOE;
      target.family = Family::kGeneric;
      target.platform = d.platform;
      target.arch = d.arch;
      target.activation = activation;
      const bool pads = rules->name == "vllm-0.30.0" && activation == "silu";
      EXPECT_EQ(round_up_sizes(*rules, target, {1, 5120, 2304}),
                (LayerDims{1, 5120, pads ? 2560 : 2304}))
          << rules->name << " " << activation;
    }
  }
}

struct Refused {
  const char* why;
  void (*change)(Deployment&);
  const char* type;
  const char* since = "0.21.0";
};

TEST(ModelBackends, RefusalsAreTheEngines) {
  const Refused cases[] = {
      {"no expert parallelism", [](Deployment& d) { d.parallel.enable_expert_parallel = false; },
       "NotImplementedError"},
      {"another GPU", [](Deployment& d) { d.arch = "sm90"; }, "NotImplementedError"},
      {"hidden size", [](Deployment& d) { d.hidden_size = 4160; }, "ValueError"},
      {"intermediate size", [](Deployment& d) { d.intermediate_size = 2112; }, "ValueError"},
      {"scoring", [](Deployment& d) { d.scoring_func = "sigmoid"; }, "NotImplementedError"},
      {"normalized weights", [](Deployment& d) { d.norm_topk_prob = false; }, "NotImplementedError",
       "0.31.0"},
      {"experts over ranks", [](Deployment& d) { d.num_experts = 260; }, "AssertionError"},
      {"LoRA", [](Deployment& d) { d.lora = true; }, "ValueError", "0.33.0"},
  };
  for (const Refused& row : cases) {
    bool reached = false;
    for (const RuleSet* rules : test::rules_of_vllm()) {
      SCOPED_TRACE(std::string(row.why) + " " + std::string(rules->name));
      reached = reached || rules->name == std::string("vllm-") + row.since;
      Deployment d = mega();
      row.change(d);
      const Decision decision = decide(*rules, d, {});
      EXPECT_EQ(decision.backend.has_value(), !reached);
      EXPECT_EQ(decision.error_type, reached ? row.type : "");
    }
    EXPECT_TRUE(reached) << row.since;
  }
}

TEST(ModelBackends, RedundantExpertsCountFrom023On) {
  Deployment d = mega();
  d.num_experts = 250;
  d.parallel.enable_eplb = true;
  d.parallel.num_redundant_experts = 6;
  EXPECT_FALSE(decide_at("0.22.0", d).backend);
  EXPECT_TRUE(decide_at("0.23.0", d).backend);
  EXPECT_TRUE(decide_at("0.33.0", d).backend);
}

// The oracle gets the name for every other model, and on platforms without such a file.
TEST(ModelBackends, OtherModelsAskTheOracle) {
  Deployment d = mega();
  d.model_type = "qwen3_moe";
  EXPECT_FALSE(decide_at("0.33.0", d).direct);
  d = mega();
  d.platform = Platform::kRocm;
  d.arch = "gfx950";
  EXPECT_FALSE(decide_at("0.33.0", d).direct);
}

// compressed-tensors on capability 9.0: the class that it took is asked afterwards, from 0.32.0 on.
TEST(MethodChoices, TheClassIsAskedAfterwards) {
  for (const char* release : {"0.31.0", "0.32.0", "0.33.0"}) {
    const RuleSet& rules = revision_by_name(release);
    const auto caller =
        std::ranges::find(rules.callers, "CompressedTensorsW4A4Mxfp4MoEMethod", &CallerRow::method);
    ASSERT_NE(caller, rules.callers.end());
    Deployment d = mega();
    d.moe_backend = "auto";
    d.model_type = "qwen3_moe";
    d.routing_method = "Renormalize";
    d.parallel = {};
    d.arch = "sm90";
    EXPECT_EQ(decide(rules, d, {.caller = &*caller}).backend, Backend::MARLIN) << release;
    d.env["VLLM_BATCH_INVARIANT"] = "1";
    const Decision decision = decide(rules, d, {.caller = &*caller});
    EXPECT_EQ(decision.backend.has_value(), std::string_view(release) == "0.31.0") << release;
    d.env.clear();
    d.arch = "sm100";
    EXPECT_EQ(decide(rules, d, {.caller = &*caller}).backend, Backend::CUTLASS_MXFP4_MXFP4)
        << release;
    d.moe_backend = "b12x";
    d.libs = {"b12x", "flashinfer"};
    d.arch = "sm120";
    EXPECT_EQ(decide(rules, d, {.caller = &*caller}).backend, Backend::B12X_MXFP4_MXFP8) << release;
  }
}

}  // namespace
}  // namespace mxfp4
