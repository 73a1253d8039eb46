// The one decision: sizes and slices of ranks, what is refused before anything is written, what to
// do next, and how two revisions differ.
#include "formats/decision/decide.hpp"

#include <gtest/gtest.h>

#include "formats/decision/compare_revisions.hpp"
#include "formats/decision/working_sizes.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/rules.hpp"

namespace mxfp4 {
namespace {

using test::rules;

// Its heads are taken away, so that other reasons decide which rank counts work.
OpenedCheckpoint open_gpt_oss() {
  OpenedCheckpoint checkpoint =
      open_checkpoint({.path = test::testdata("ingest/gptoss_hf")}, rules());
  checkpoint.config->num_attention_heads.reset();
  checkpoint.config->num_key_value_heads.reset();
  return checkpoint;
}

ConversionRequest on_arch(std::string arch) {
  ConversionRequest request{.rules = &rules()};
  request.deployment.arch = std::move(arch);
  return request;
}

// Layers of a model of these sizes, as the generic loader has them.
ModelLayers generic_model(const LayerDims& dims) {
  ModelLayers model;
  model.loader = Loader::kGeneric;
  model.family = Family::kGeneric;
  model.layers.emplace_back().dims = dims;
  return model;
}

TEST(Decide, RoundsForTheAllToAllKernelThenForTheBackend) {
  const LayerDims dims{128, 2880, 2880};
  const ModelLayers model = generic_model(dims);
  Deployment deployment;
  deployment.platform = Platform::kCuda;
  deployment.arch = "sm90";
  Target target;
  target.platform = deployment.platform;
  target.backend = Backend::TRITON;
  const auto padded = [&] {
    return cut_ranks(model, dims, {rules(), deployment, target}).front().padded;
  };
  deployment.parallel.tp_size = 4;
  EXPECT_EQ(padded(), (LayerDims{128, 2880, 768}));
  deployment.parallel.tp_size = 7;
  EXPECT_THROW((void)padded(), Error);
  deployment.parallel = {.tp_size = 1,
                         .dp_size = 2,
                         .enable_expert_parallel = true,
                         .all2all_backend = "deepep_low_latency"};
  target.backend = Backend::BATCHED_MARLIN;
  EXPECT_EQ(padded(), (LayerDims{64, 3072, 2944}));
  const LayerDims large{8, 9000, 2880};
  EXPECT_THROW((void)cut_ranks(generic_model(large), large, {rules(), deployment, target}), Error);
}

TEST(Decide, TakesTheSizesOfABlobWhereTheyAreGiven) {
  const LayerDims dims{4, 64, 96};
  Deployment deployment;
  deployment.parallel.tp_size = 3;
  const std::vector<RankSlice> ranks = cut_ranks(
      generic_model(dims), dims,
      {.rules = rules(), .deployment = deployment, .target = {}, .padded = LayerDims{4, 128, 64}});
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[0].padded, (LayerDims{4, 128, 64}));
}

TEST(Decide, AnswersWithLayoutAndSlices) {
  const OpenedCheckpoint checkpoint = open_gpt_oss();
  ConversionRequest request = on_arch("sm90");
  request.deployment.tp_size = 3;
  const Conversion conversion = decide_conversion(request, &checkpoint);
  ASSERT_FALSE(conversion.refusal) << conversion.refusal->what();
  EXPECT_EQ(conversion.decision.backend, Backend::TRITON);
  EXPECT_EQ(id_of(*conversion.layout), "triton/hopper");
  EXPECT_EQ(conversion.model, (LayerDims{4, 64, 96}));
  ASSERT_EQ(conversion.ranks.size(), 3U);
  EXPECT_EQ(conversion.ranks[2].begin, 64);
  EXPECT_EQ(conversion.ranks[2].end, 96);
  request.rank = 1;
  const Conversion one = decide_conversion(request, &checkpoint);
  ASSERT_EQ(one.ranks.size(), 1U);
  EXPECT_EQ(one.ranks[0].rank, 1);
  request.rank = 3;
  EXPECT_THROW((void)decide_conversion(request, &checkpoint), Error);
}

// Otherwise `explain` would end with 0 and name a command that convert refuses.
TEST(Decide, RefusesWhatCannotBeWritten) {
  const OpenedCheckpoint checkpoint = open_gpt_oss();
  const auto refusal = [&](const ConversionRequest& request) -> std::string {
    const Conversion conversion = decide_conversion(request, &checkpoint);
    if (!conversion.refusal) return "";
    EXPECT_EQ(conversion.refusal->kind(), ErrorKind::kUnsupported);
    EXPECT_THROW(require_conversion(conversion), Error);
    return conversion.refusal->message();
  };
  ConversionRequest request = on_arch("sm90");
  EXPECT_EQ(refusal(request), "");
  request.deployment.tp_size = 3;
  request.deployment.enable_expert_parallel = true;
  EXPECT_NE(refusal(request).find("4 experts are not divisible by 3"), std::string::npos);
  request.deployment.tp_size = 8;
  EXPECT_EQ(refusal(request), "8 expert-parallel ranks for 4 experts");
  request = on_arch("sm90");
  request.deployment.tp_size = 5;
  EXPECT_EQ(refusal(request), "intermediate size 96 is not divisible by 5 ranks");
  request.deployment.tp_size = 2;
  request.pad = false;
  EXPECT_NE(refusal(request).find("not whole scale blocks"), std::string::npos);
  request = on_arch("sm90");
  request.backend = Backend::FLASHINFER_CUTLASS_MXFP4_BF16;
  request.pad = false;
  EXPECT_NE(refusal(request).find("must be a multiple of"), std::string::npos);
  EXPECT_NE(refusal(on_arch("aarch64")), "");
}

// The testdata's scales are random bytes: 255 apart, of 130 that int8 allows.
TEST(Decide, ReadsScalesThatALayoutMayRefuse) {
  ConversionRequest request = on_arch("sm80");
  request.backend = Backend::HUMMING;
  request.knobs["humming_input_dtype"] = "int8";
  const OpenedCheckpoint checkpoint = open_gpt_oss();
  const Conversion conversion = decide_conversion(request, &checkpoint);
  ASSERT_TRUE(conversion.refusal);
  EXPECT_EQ(conversion.refusal->kind(), ErrorKind::kUnsupported);
  const std::string text = conversion.refusal->what();
  EXPECT_TRUE(text.starts_with("model.layers.0.mlp.experts, expert 0: scale bytes")) << text;
  EXPECT_FALSE(decide_conversion(request, nullptr).refusal);
  request.knobs.clear();
  EXPECT_FALSE(decide_conversion(request, &checkpoint).refusal);
}

TEST(Decide, RefusesKnownDefectsUnlessTheyAreAccepted) {
  const OpenedCheckpoint checkpoint =
      open_checkpoint({.path = test::testdata("ingest/dsv4")}, rules());
  ConversionRequest request = on_arch("gfx950");
  request.backend = Backend::AITER_MXFP4_BF16;
  const Conversion refused = decide_conversion(request, &checkpoint);
  ASSERT_EQ(refused.defects.size(), 1U);
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->message(), refused.defects.front());
  request.allow_known_defects = true;
  EXPECT_FALSE(decide_conversion(request, &checkpoint).refusal);
}

TEST(Decide, ThrowsWhatIsNoAnswer) {
  const OpenedCheckpoint checkpoint = open_gpt_oss();
  const auto kind = [&](const ConversionRequest& request) {
    try {
      (void)decide_conversion(request, &checkpoint);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  ConversionRequest request = on_arch("sm90");
  request.deployment.tp_size = 0;
  EXPECT_EQ(kind(request), ErrorKind::kInput);
  request = on_arch("");
  request.deployment.arch.reset();
  EXPECT_EQ(kind(request), ErrorKind::kUsage);
  request = on_arch("sm90");
  request.deployment.activation = "loud";
  EXPECT_EQ(kind(request), ErrorKind::kInput);
}

TEST(SizesThatWork, LieAroundTheAskedOne) {
  const OpenedCheckpoint checkpoint = open_gpt_oss();
  const auto sizes = [&](const ConversionRequest& request) {
    return sizes_that_work(request, decide_conversion(request, &checkpoint), &checkpoint);
  };
  ConversionRequest request = on_arch("sm90");
  EXPECT_TRUE(sizes(request).values.empty());  // nothing refuses
  request.deployment.tp_size = 5;
  EXPECT_EQ(sizes(request).values, (std::vector<int64_t>{3, 4, 6, 8}));
  request.rank = 4;  // has to be one of the ranks
  EXPECT_EQ(sizes(request).values, (std::vector<int64_t>{6, 8}));
  request.rank.reset();
  request.deployment.tp_size = 65536;
  EXPECT_EQ(sizes(request).values, (std::vector<int64_t>{48, 96}));
  // 7 data parallel ranks cannot be, whatever the tensor parallel size.
  request.deployment.tp_size = 2;
  request.deployment.dp_size = 7;
  EXPECT_EQ(sizes(request).size, &DeploymentFacts::dp_size);
  EXPECT_EQ(sizes(request).values, (std::vector<int64_t>{4, 6, 8, 12}));
  // Another machine is needed, not another size.
  request.deployment.arch = "aarch64";
  EXPECT_TRUE(sizes(request).values.empty());
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
