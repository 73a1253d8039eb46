// Beside the one decision: fused experts, and how two revisions differ.
#include "formats/decision/decide.hpp"

#include <gtest/gtest.h>

#include "formats/decision/compare_revisions.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/rules.hpp"

namespace mxfp4 {
namespace {

using test::rules;

ConversionRequest on_arch(std::string arch) {
  ConversionRequest request{.rules = &rules()};
  request.deployment.arch = std::move(arch);
  return request;
}

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

TEST(CompareRevisions, TellsWhatMovesBytes) {
  const std::optional<Error> none;
  const Conversion before = decide_conversion(on_arch("sm90"), nullptr);
  const auto compare = [&](const Conversion& after, const std::optional<Error>& error) {
    return compare_revisions({rules(), before, none}, {rules(), after, error});
  };
  EXPECT_EQ(compare(before, none).verdict, RevisionVerdict::kNothingChanges);
  EXPECT_TRUE(share_blobs({rules(), before, none}, {rules(), before, none}));

  Conversion after = before;
  after.decision.notes.emplace_back("slow");
  after.deployment.libs.insert("a package");
  RevisionDifference difference = compare(after, none);
  EXPECT_EQ(difference.facts, (std::vector{RevisionFact::kPackages, RevisionFact::kNotes}));
  EXPECT_FALSE(difference.repack);
  EXPECT_EQ(difference.verdict, RevisionVerdict::kBytesStay);

  after = before;
  after.family = Family::kGeneric;
  EXPECT_EQ(compare(after, none).verdict, RevisionVerdict::kOtherBytes);
  EXPECT_FALSE(share_blobs({rules(), before, none}, {rules(), after, none}));
  after = before;
  after.row = nullptr;
  EXPECT_EQ(compare(after, none).facts, std::vector{RevisionFact::kLayout});
  EXPECT_TRUE(compare(after, none).repack);

  const std::optional<Error> unknown = Error::usage("no such name");
  EXPECT_EQ(compare(Conversion(), unknown).verdict, RevisionVerdict::kOneRefuses);
  after = before;
  after.refusal = Error::unsupported("sizes");
  EXPECT_EQ(compare(after, none).verdict, RevisionVerdict::kOneRefuses);
  EXPECT_FALSE(share_blobs({rules(), after, none}, {rules(), after, none}));
}

// Revisions slice alike but for the generic loader.
TEST(CompareRevisions, TellsWhereRanksBegin) {
  const std::optional<Error> none;
  Conversion conversion = decide_conversion(on_arch("sm90"), nullptr);
  conversion.deployment.parallel.tp_size = 2;
  conversion.family = Family::kGptOss;
  EXPECT_FALSE(slices_by_checkpoint({rules(), conversion, none}).has_value());
  conversion.family = Family::kGeneric;
  EXPECT_EQ(slices_by_checkpoint({rules(), conversion, none}),
            rules().loader.strides_by_checkpoint);
  conversion.deployment.parallel.enable_expert_parallel = true;
  EXPECT_FALSE(slices_by_checkpoint({rules(), conversion, none}).has_value());
}

}  // namespace
}  // namespace mxfp4
