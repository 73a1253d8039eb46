// Beside the one decision: fused experts.
#include "formats/decision/decide.hpp"

#include <gtest/gtest.h>

#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/rules.hpp"

namespace mxfp4 {
namespace {

// The models' files for ROCm ask the variable only (0.29.0 on), and stop under data parallelism (0.31.0 on).
TEST(FusedSharedExperts, FollowTheVariableAlone) {
  const auto row = [](const char* release, const char* model, int64_t dp, bool experts, bool aiter,
                      std::optional<bool> mxfp4 = true) {
    const RuleSet& rules = revision_by_name(release);
    DeploymentFacts facts;
    facts.platform = Platform::kRocm;
    facts.arch = "gfx950";
    facts.env = {{"VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS", "1"}};
    if (aiter) facts.env.emplace("VLLM_ROCM_USE_AITER", "1");
    facts.dp_size = dp;
    facts.enable_expert_parallel = experts;
    Deployment deployment = resolve_deployment(rules, facts, nullptr, nullptr);
    deployment.model_type = model;
    const FusedSharedRow* found = fused_shared_row(rules, deployment, mxfp4);
    return found == nullptr ? "apart" : found->stops.empty() ? "fused" : "stops";
  };
  for (const char* model : {"deepseek_v4", "minimax_m3"}) {
    EXPECT_STREQ(row("0.33.0", model, 1, false, false), "fused") << model;
    EXPECT_STREQ(row("0.33.0", model, 1, true, true), "apart") << model;
    EXPECT_STREQ(row("0.33.0", model, 1, false, true, false), "apart") << model;
  }
  EXPECT_STREQ(row("0.33.0", "deepseek_v4", 8, false, false), "stops");
  EXPECT_STREQ(row("0.33.0", "deepseek_v4", 8, false, false, false), "stops");
  EXPECT_STREQ(row("0.33.0", "deepseek_v4", 8, true, false), "apart");
  EXPECT_STREQ(row("0.30.0", "deepseek_v4", 8, false, false), "fused");
  EXPECT_STREQ(row("0.28.0", "deepseek_v4", 1, false, true), "apart");
  EXPECT_STREQ(row("0.33.0", "qwen3_next", 1, false, false), "apart");
  EXPECT_STREQ(row("0.33.0", "qwen3_next", 1, false, true), "fused");
}

}  // namespace
}  // namespace mxfp4
