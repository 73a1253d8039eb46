// Which method class serves a checkpoint at vllm-2026-08-17, and the rows whose choice depends on
// more than backend and arch.
#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

const RuleSet& rules() { return revision_by_name("vllm-2026-08-17"); }

const CallerRow& caller_of(std::string model_type, std::string method,
                           std::string activation = "") {
  ModelConfig config;
  config.model_type = std::move(model_type);
  config.quantization = Quantization{std::move(method), "", std::move(activation)};
  config.quantization->format = "mxfp4-pack-quantized";
  return *find_caller(rules(), config);
}

TEST(NewerCallers, GenericModelsHaveTheGenericMethod) {
  EXPECT_EQ(caller_of("gpt_oss", "mxfp4").family, Family::kGptOss);
  for (const CallerRow* row :
       {&caller_of("qwen3_moe", "mxfp4"), &caller_of("deepseek_v4", "fp8"),
        &caller_of("deepseek_v4", "quark"), &caller_of("kimi_k3", "compressed-tensors")}) {
    EXPECT_EQ(row->method, "Mxfp4MoEMethod") << row->text;
    EXPECT_EQ(row->family, Family::kGeneric) << row->text;
    EXPECT_EQ(row->selector, Selector::kDeepseekV4) << row->text;
    EXPECT_TRUE(row->rounds) << row->text;
  }
}

TEST(NewerCallers, MethodsThatDoNotAskNeverRound) {
  for (const char* method : {"compressed-tensors", "auto-round", "inc"}) {
    const CallerRow& row = caller_of("qwen3_moe", method);
    EXPECT_FALSE(row.rounds) << method;
    EXPECT_FALSE(row.direct.empty()) << method;
  }
  EXPECT_THROW((void)find_caller(revision_by_name("vllm-2026-05-18"),
                                 [] {
                                   ModelConfig config;
                                   config.quantization = Quantization{"auto-round", "", ""};
                                   return config;
                                 }()),
               Error);
}

// Up to 0.26.0 one method serves every mxfp4 checkpoint, and the generic loader loads no biases.
TEST(OlderCallers, TheGenericMethodComesWith027) {
  ModelConfig generic;
  generic.model_type = "qwen3_moe";
  generic.quantization = Quantization{"mxfp4", "", ""};
  ModelConfig deepseek_v4 = generic;
  deepseek_v4.model_type = "deepseek_v4";
  deepseek_v4.quantization->name = "quark";
  ModelConfig auto_round = generic;
  auto_round.quantization->name = "auto-round";
  for (const char* release :
       {"0.22.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.25.1", "0.26.0"}) {
    const RuleSet& older = revision_by_name(release);
    EXPECT_EQ(find_caller(older, generic)->method, "GptOssMxfp4MoEMethod") << release;
    EXPECT_EQ(find_caller(older, deepseek_v4)->method, "QuarkOCP_MX_MoEMethod") << release;
    EXPECT_THROW((void)find_caller(older, auto_round), Error) << release;
    EXPECT_FALSE(older.loader.loads_biases) << release;
    EXPECT_FALSE(older.loader.creates_biases) << release;
  }
  for (const char* release : {"0.27.0", "0.27.1", "0.28.0", "0.33.0"}) {
    const RuleSet& newer = revision_by_name(release);
    EXPECT_EQ(find_caller(newer, generic)->method, "Mxfp4MoEMethod") << release;
    // Up to 0.30.0 DeepSeek-V4's own config takes Quark's checkpoints of it.
    EXPECT_EQ(find_caller(newer, deepseek_v4)->method,
              std::string_view(release) == "0.33.0" ? "QuarkOCP_MX_MoEMethod" : "Mxfp4MoEMethod")
        << release;
    EXPECT_EQ(find_caller(newer, auto_round)->method, "INCMxfp4MoEMethod") << release;
    EXPECT_TRUE(newer.loader.loads_biases) << release;
  }
}

// vLLM 0.21.0 asks the oracle, and emulates all the same.
TEST(OlderCallers, QuarkEmulatesWithoutAiter) {
  const RuleSet& oldest = revision_by_name("0.21.0");
  ModelConfig config;
  config.quantization = Quantization{"quark", "", ""};
  const ModelFacts facts{.caller = find_caller(oldest, config), .family = Family::kGptOss};
  Deployment deployment;
  deployment.platform = Platform::kCuda;
  deployment.arch = "sm90";
  deployment.libs = {"triton_kernels"};
  const Decision on_cuda = decide(oldest, deployment, facts, std::nullopt);
  EXPECT_EQ(on_cuda.trace.back().candidate, "OAITritonMxfp4ExpertsMonolithic");
  EXPECT_EQ(on_cuda.backend, Backend::EMULATION);
  EXPECT_EQ(on_cuda.experts_class, "OCP_MXQuantizationEmulationTritonExperts");
  ASSERT_FALSE(on_cuda.notes.empty());
  EXPECT_TRUE(on_cuda.notes.front().starts_with("QuarkOCP_MX_MoEMethod runs EMULATION in place of"))
      << on_cuda.notes.front();
  deployment.moe_backend = "marlin";
  deployment.libs = {};
  deployment.arch = "sm70";
  EXPECT_EQ(decide(oldest, deployment, facts, std::nullopt).error_type, "ValueError");
  deployment.moe_backend = "auto";
  deployment.platform = Platform::kRocm;
  deployment.arch = "gfx942";
  deployment.libs = {"aiter", "triton_kernels"};
  deployment.env = {{"VLLM_ROCM_USE_AITER", "1"}};
  EXPECT_EQ(decide(oldest, deployment, facts, std::nullopt).backend, Backend::TRITON);
}

TEST(OlderCallers, QuarkDoesNotAskForQuantizedActivations) {
  const RuleSet& oldest = revision_by_name("0.21.0");
  ModelConfig config;
  config.quantization = Quantization{"quark", "", "mxfp4"};
  const ModelFacts facts{.caller = find_caller(oldest, config), .family = Family::kGptOss};
  Deployment deployment;
  deployment.platform = Platform::kCuda;
  deployment.arch = "sm100";
  EXPECT_EQ(decide(oldest, deployment, facts, std::nullopt).backend, Backend::EMULATION);
  deployment.platform = Platform::kRocm;
  deployment.arch = "gfx950";
  EXPECT_EQ(decide(oldest, deployment, facts, std::nullopt).error_type, "NotImplementedError");
}

TEST(NewerCallers, QuarkRoundsOnTheEmulationToo) {
  EXPECT_EQ(caller_of("qwen3_moe", "quark", "mxfp4").never_rounds, std::nullopt);
}

// Kimi-K3 on ROCm with AITER: from 0.32.0 on its method class does not ask the selector.
class SituCallers : public ::testing::TestWithParam<std::string_view> {
 protected:
  SituCallers() {
    ModelConfig config;
    config.model_type = "kimi_k3";
    config.quantization = Quantization{"compressed-tensors", "", ""};
    config.quantization->format = "mxfp4-pack-quantized";
    caller_ = find_caller(rules_, config);
    deployment_.platform = Platform::kRocm;
    deployment_.arch = "gfx950";
    deployment_.libs = {"aiter", "triton_kernels"};
    deployment_.env = {{"VLLM_ROCM_USE_AITER", "1"}};
    deployment_.selector = Selector::kDeepseekV4;
    deployment_.moe_backend = "emulation";
    deployment_.activation = "situ";
    deployment_.routing_method = "DeepSeekV3";
    deployment_.model_type = "kimi_k3";
    deployment_.situ_linear_beta = true;
  }

  [[nodiscard]] Decision decided() const {
    return decide(rules_, deployment_, {.caller = caller_, .family = Family::kGeneric});
  }

  const RuleSet& rules_ = revision_by_name(GetParam());
  const CallerRow* caller_ = nullptr;
  Deployment deployment_;
};

INSTANTIATE_TEST_SUITE_P(, SituCallers, ::testing::Values("0.32.0", "0.33.0"));

TEST_P(SituCallers, Gfx950TakesAiterWhateverWasAskedFor) {
  const Decision decision = decided();
  EXPECT_EQ(decision.backend, Backend::AITER_MXFP4_BF16);
  EXPECT_NE(find_class(rules_, decision.experts_class), nullptr) << decision.experts_class;
  EXPECT_TRUE(decision.direct);
  EXPECT_EQ(decision.trace.size(), 1U);
}

TEST_P(SituCallers, EveryConditionIsNeeded) {
  const Deployment whole = deployment_;
  const std::vector<void (*)(Deployment&)> changes = {
      [](Deployment& d) { d.situ_linear_beta = false; },
      [](Deployment& d) { d.activation = "silu"; },
      [](Deployment& d) { d.arch = "gfx1250"; },
      [](Deployment& d) { d.libs = {"triton_kernels"}; },
      [](Deployment& d) { d.env = {}; },
      [](Deployment& d) { d.env["VLLM_ROCM_USE_AITER_MOE"] = "0"; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    deployment_ = whole;
    changes[i](deployment_);
    EXPECT_FALSE(decided().direct) << "change " << i;
  }
}

TEST_P(SituCallers, Gfx942RequantizesOnlyWhereItIsAskedTo) {
  deployment_.arch = "gfx942";
  EXPECT_FALSE(decided().direct);
  deployment_.weight_override = "int4_per_group_32";
  const Decision decision = decided();
  EXPECT_TRUE(decision.direct);
  ASSERT_EQ(decision.backend, Backend::AITER_MXFP4_BF16);
  EXPECT_NE(find_class(rules_, decision.experts_class), nullptr) << decision.experts_class;
  Target target = make_target(deployment_, decision, Family::kGeneric);
  EXPECT_NE(find_layout_row(rules_, target)->layout, &kAiterInt4Layout) << "without the knob";
  target.knobs = decision.knobs;
  EXPECT_EQ(find_layout_row(rules_, target)->layout, &kAiterInt4Layout);
  target.arch = "gfx950";
  EXPECT_EQ(find_layout_row(rules_, target)->layout, &kAiterBf16SituLayout);
}

TEST(NewerCallers, OlderReleasesAskForSituToo) {
  for (const std::string_view name : {"0.30.0", "0.31.0"}) {
    for (const CallerRow& row : revision_by_name(name).callers) {
      EXPECT_TRUE(row.exceptions.empty()) << name << " " << row.text;
    }
  }
}

const Layout* layout_of(Target target) {
  target.platform = target.arch.starts_with("gfx") ? Platform::kRocm : Platform::kCuda;
  const LayoutRow* row = find_layout_row(rules(), target);
  return row == nullptr ? nullptr : row->layout;
}

TEST(NewerLayouts, AiterFollowsArchActivationAndSwitch) {
  Target target;
  target.backend = Backend::AITER_MXFP4_BF16;
  target.family = Family::kGeneric;
  target.arch = "gfx950";
  EXPECT_EQ(layout_of(target), &kAiterBf16HalvesLayout);
  target.activation = "situ";
  EXPECT_EQ(layout_of(target), &kAiterBf16SituLayout);
  target.env = {{"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", "1"}};
  EXPECT_EQ(layout_of(target), &kAiterBf16SituLayout) << "AITER itself is off";
  target.env["VLLM_ROCM_USE_AITER"] = "1";
  EXPECT_EQ(layout_of(target), &kAiterBf16SituA8w4Layout);
  target.env["VLLM_ROCM_USE_AITER_MOE"] = "0";
  EXPECT_EQ(layout_of(target), &kAiterBf16SituLayout);
  target.arch = "gfx1250";
  EXPECT_EQ(layout_of(target), &kTritonStridedLayout);
  target.family = Family::kGptOss;
  EXPECT_EQ(layout_of(target), &kAiterW4a16Layout);
}

TEST(NewerLayouts, LargerWorldsHaveNoSwizzle) {
  Target target;
  target.arch = "gfx950";
  for (const int64_t world : {1, 2, 4}) {
    target.world_size = world;
    target.backend = Backend::TRITON;
    EXPECT_EQ(layout_of(target), world <= 2 ? &kTritonCdna4Layout : &kTritonStridedLayout);
    target.backend = Backend::AITER_MXFP4_FP8;
    EXPECT_EQ(layout_of(target), world <= 2 ? &kAiterW4a8Fp8Layout : &kAiterW4a8Fp8StridedLayout);
  }
}

TEST(NewerLayouts, UnverifiedBytesAreRefused) {
  Target target;
  target.backend = Backend::HUMMING;
  target.arch = "sm90";
  EXPECT_EQ(layout_of(target), nullptr);
  target.backend = Backend::DEEPGEMM_MXFP4;
  target.arch = "sm120";
  EXPECT_EQ(layout_of(target), nullptr);
  target.platform = Platform::kCuda;
  for (const std::string_view release : {"0.25.0", "0.26.0", "0.28.0", "0.33.0"}) {
    EXPECT_EQ(find_layout_row(revision_by_name(release), target)->layout, &kDeepgemmPackedLayout);
  }
  for (const std::string_view release : {"0.24.0", "0.27.0", "0.27.1"}) {
    EXPECT_EQ(find_layout_row(revision_by_name(release), target)->refusal_type, "RuntimeError");
  }
  target.arch = "sm100";
  EXPECT_EQ(layout_of(target), &kDeepgemmPackedLayout);
}

}  // namespace
}  // namespace mxfp4
