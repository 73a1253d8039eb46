// What a method class decides that does not ask the oracle.
#include "lib/oracle/checkpoint.hpp"

#include <gtest/gtest.h>

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

Decision decide_case(const ModelConfig& config, std::string arch, std::string moe_backend) {
  DeploymentFacts facts;
  facts.arch = std::move(arch);
  facts.moe_backend = std::move(moe_backend);
  const CallerRow* caller = find_caller(rules(), config);
  return decide(rules(), resolve_deployment(rules(), facts, caller, &config), {.caller = caller},
                {});
}

TEST(Checkpoint, CallersThatDoNotAskTheOracle) {
  const ModelConfig fp6 = checkpoint("qwen3_moe", "quark", "fp6");
  Decision decision = decide_case(fp6, "sm100", "marlin");
  EXPECT_EQ(decision.backend, Backend::EMULATION);
  const ModelConfig compressed = checkpoint("qwen3_moe", "compressed-tensors");
  decision = decide_case(compressed, "sm90", "triton");
  EXPECT_EQ(decision.backend, Backend::MARLIN);
  EXPECT_EQ(decision.trace.size(), 1);
  decision = decide_case(compressed, "sm100", "auto");
  EXPECT_EQ(decision.backend, Backend::CUTLASS_MXFP4_MXFP4);
  EXPECT_EQ(decision.experts_class, "CutlassExpertsMxfp4");
  EXPECT_EQ(decision.notes.size(), 1);
}

}  // namespace
}  // namespace mxfp4
