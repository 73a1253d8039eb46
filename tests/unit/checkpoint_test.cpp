// Which caller a checkpoint has, what is noted about its decision, and the sizes that follow.
#include "lib/oracle/checkpoint.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/unit/rules.hpp"

namespace mxfp4 {
namespace {

using test::rules;

ModelConfig checkpoint(std::string model_type, std::string method, std::string activation = "") {
  ModelConfig config;
  config.model_type = std::move(model_type);
  config.quantization = Quantization{std::move(method), "", std::move(activation)};
  return config;
}

struct NoteCase {
  ModelConfig config;
  std::string arch = "sm100";
  std::string moe_backend = "auto";
  std::optional<bool> biases{};
  std::optional<bool> input_scales{};
  bool eplb = false;
  std::optional<Backend> forced{};
};

Decision decide_case(const NoteCase& c) {
  DeploymentFacts request;
  request.arch = c.arch;
  request.moe_backend = c.moe_backend;
  request.enable_eplb = c.eplb;
  request.libs = std::set<std::string>{
      "flashinfer", "flashinfer_cutlass", "triton_kernels", "deep_gemm", "aiter", "humming"};
  request.env = {{"VLLM_ROCM_USE_AITER", "1"}};
  const CallerRow* caller = find_caller(rules(), c.config);
  const Deployment deployment = resolve_deployment(rules(), request, caller, &c.config);
  return decide(rules(), deployment,
                {.caller = caller, .biases = c.biases, .input_scales = c.input_scales}, c.forced);
}

// The notes of a decision, a line each; "" for none.
std::string notes_of(const NoteCase& c) {
  std::string all;
  for (const std::string& note : decide_case(c).notes) all += note + "\n";
  return all;
}

void expect_note(const NoteCase& c, std::string_view part) {
  EXPECT_NE(notes_of(c).find(part), std::string::npos) << notes_of(c) << "\nlacks: " << part;
}

const ModelConfig kGptOss = checkpoint("gpt_oss", "mxfp4");
const ModelConfig kDeepseek = checkpoint("deepseek_v4", "fp8");
const ModelConfig kQuark = checkpoint("gpt_oss", "quark");

TEST(Checkpoint, CallersByQuantMethod) {
  const auto method = [](const ModelConfig& config) {
    return find_caller(rules(), config)->method;
  };
  EXPECT_EQ(method(kGptOss), "GptOssMxfp4MoEMethod");
  EXPECT_EQ(method(checkpoint("gpt_oss", "gpt_oss_mxfp4")), "GptOssMxfp4MoEMethod");
  EXPECT_EQ(method(checkpoint("qwen3_moe", "mxfp4")), "GptOssMxfp4MoEMethod");
  EXPECT_EQ(method(kDeepseek), "Mxfp4MoEMethod");
  EXPECT_EQ(method(kQuark), "QuarkOCP_MX_MoEMethod");
  EXPECT_EQ(method(checkpoint("qwen3_moe", "compressed-tensors")),
            "CompressedTensorsW4A4Mxfp4MoEMethod");
  EXPECT_EQ(find_caller(rules(), ModelConfig{}), nullptr);
  EXPECT_THROW((void)find_caller(rules(), checkpoint("llama", "fp8")), Error);
  EXPECT_THROW((void)find_caller(rules(), checkpoint("llama", "awq")), Error);
  ModelConfig fp8_experts = kDeepseek;
  fp8_experts.quantization->expert_dtype = "fp8";
  EXPECT_THROW((void)find_caller(rules(), fp8_experts), Error);
}

TEST(Checkpoint, CallerToAssumeWithoutACheckpoint) {
  const auto method = [](Selector selector, std::optional<Family> family) {
    const CallerRow* caller = usual_caller(rules(), selector, family);
    return caller == nullptr ? std::string_view("none") : caller->method;
  };
  EXPECT_EQ(method(Selector::kGptOss, {}), "GptOssMxfp4MoEMethod");
  EXPECT_EQ(method(Selector::kDeepseekV4, {}), "Mxfp4MoEMethod");
  EXPECT_EQ(method(Selector::kDeepseekV4, Family::kGptOss), "none");
  EXPECT_EQ(method(Selector::kGptOss, Family::kGeneric), "none");
}

TEST(Checkpoint, NothingToNoteWhereTheReferenceWorks) {
  EXPECT_EQ(notes_of({.config = kGptOss, .biases = true}), "");
  EXPECT_EQ(notes_of({.config = kDeepseek, .biases = false}), "");
  EXPECT_EQ(notes_of({.config = kQuark, .arch = "gfx950"}), "");
}

TEST(Checkpoint, LoadTimeFailuresAreNoted) {
  expect_note({.config = checkpoint("qwen3_moe", "mxfp4")}, "gate and up halves");
  expect_note({.config = checkpoint("qwen3_moe", "mxfp4")}, "(fixed in vLLM 017e9f4448");
  expect_note({.config = kQuark},
              "passes no permute cache, which the FLASHINFER_TRTLLM_MXFP4_BF16");
  expect_note({.config = kQuark, .moe_backend = "humming"}, "does not pass the layer");
  expect_note({.config = kGptOss, .moe_backend = "humming"}, "fixed in vLLM 206b72c982");
  expect_note({.config = kDeepseek, .moe_backend = "flashinfer_cutlass"},
              "the generic converter does not take FLASHINFER_CUTLASS_MXFP4_MXFP8");
  expect_note({.config = kDeepseek, .moe_backend = "emulation"}, "does not take EMULATION");
  expect_note({.config = kGptOss, .biases = false}, "asserts that both biases exist");
  expect_note({.config = checkpoint("gpt_oss", "quark", "fp8_per_tensor_static"),
               .arch = "gfx950",
               .input_scales = false},
              "W4A8 (AITER_MXFP4_FP8) requires static input scales");
  expect_note({.config = kGptOss, .eplb = true}, "EPLB is not supported GptOssMxfp4MoEMethod.");
  expect_note({.config = kGptOss, .arch = "sm75"}, "needs capability 80 or more");
  EXPECT_EQ(notes_of({.config = kDeepseek, .arch = "sm75"}), "");
  expect_note({.config = kGptOss, .arch = "x86_64"}, "AVX512_BF16");
  expect_note({.config = kGptOss, .moe_backend = "flashinfer_trtllm_afp8"},
              "moe_backend 'flashinfer_trtllm_afp8' is not accepted");
}

TEST(Checkpoint, QuarkReplacesTheChosenClassByTheFirst) {
  ModelConfig config = kQuark;
  config.quantization->activation = "";
  const NoteCase c{
      .config = config, .arch = "sm100", .moe_backend = "flashinfer_trtllm", .eplb = true};
  EXPECT_EQ(decide_case(c).experts_class, "TrtLlmMxfp4ExpertsModular");
  expect_note(c, "replaces the chosen class by the backend's first one, TrtLlmMxfp4ExpertsMono");
}

TEST(Checkpoint, CallersThatDoNotAskTheOracle) {
  const ModelConfig fp6 = checkpoint("qwen3_moe", "quark", "fp6");
  Decision decision = decide_case({.config = fp6, .moe_backend = "marlin"});
  EXPECT_EQ(decision.backend, Backend::EMULATION);
  const ModelConfig compressed = checkpoint("qwen3_moe", "compressed-tensors");
  decision = decide_case({.config = compressed, .arch = "sm90", .moe_backend = "triton"});
  EXPECT_EQ(decision.backend, Backend::MARLIN);
  EXPECT_EQ(decision.trace.size(), 1);
  decision = decide_case({.config = compressed, .arch = "sm100"});
  EXPECT_EQ(decision.backend, Backend::CUTLASS_MXFP4_MXFP4);
  EXPECT_EQ(decision.experts_class, "CutlassExpertsMxfp4");
  EXPECT_EQ(decision.notes.size(), 1);
}

TEST(Checkpoint, ForcedBackendAsksNothing) {
  const Decision decision =
      decide_case({.config = kDeepseek, .arch = "sm75", .forced = Backend::CPU});
  EXPECT_TRUE(decision.forced);
  EXPECT_EQ(decision.backend, Backend::CPU);
  ASSERT_EQ(decision.trace.size(), 1);
  EXPECT_EQ(decision.trace[0].candidate, "CPU (forced by --backend)");
  EXPECT_NE(decision.notes.front().find("the generic converter does not take CPU"),
            std::string::npos);
}

TEST(Checkpoint, FamilyOfTheConverter) {
  EXPECT_EQ(family_of(nullptr, {}, Selector::kGptOss), Family::kGptOss);
  EXPECT_EQ(family_of(nullptr, {}, Selector::kDeepseekV4), Family::kGeneric);
  EXPECT_EQ(family_of(find_caller(rules(), kDeepseek), {}, Selector::kGptOss), Family::kGeneric);
  EXPECT_EQ(family_of(find_caller(rules(), kDeepseek), Family::kGptOss, Selector::kGptOss),
            Family::kGptOss);
}

TEST(Checkpoint, MultiplesThatSizesAreRoundedUpTo) {
  Target target;
  target.backend = Backend::TRITON;
  target.platform = Platform::kCuda;
  target.arch = "sm90";
  EXPECT_EQ(rounding_multiples(rules(), nullptr, target), (LayerDims{1, 1, 64}));
  // compressed-tensors rounds nothing, Quark nothing for emulation.
  EXPECT_EQ(rounding_multiples(rules(), find_caller(rules(), checkpoint("x", "compressed-tensors")),
                               target),
            (LayerDims{1, 1, 1}));
  target.backend = Backend::EMULATION;
  target.platform = Platform::kRocm;
  target.arch = "gfx950";
  EXPECT_EQ(rounding_multiples(rules(), find_caller(rules(), kQuark), target),
            (LayerDims{1, 1, 1}));
  EXPECT_EQ(rounding_multiples(rules(), nullptr, target), (LayerDims{1, 256, 256}));
}

}  // namespace
}  // namespace mxfp4
