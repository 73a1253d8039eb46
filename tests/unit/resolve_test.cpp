// From what a user says to a complete deployment.
#include "lib/oracle/resolve.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"
#include "tests/unit/rules.hpp"

namespace mxfp4 {
namespace {

using test::rules;

Deployment resolve(const DeploymentFacts& request) {
  return resolve_deployment(rules(), request, nullptr, nullptr);
}

DeploymentFacts facts_on_arch(std::string arch) {
  DeploymentFacts request;
  request.arch = std::move(arch);
  return request;
}

TEST(Resolve, DefaultsOfTheSelectorsWithoutACheckpoint) {
  DeploymentFacts request = facts_on_arch("sm90");
  EXPECT_EQ(resolve(request).activation, "swigluoai");
  EXPECT_EQ(resolve(request).routing_method, "Renormalize");
  request.selector = Selector::kDeepseekV4;
  EXPECT_EQ(resolve(request).activation, "silu");
  EXPECT_EQ(resolve(request).routing_method, "DeepseekV4");
  request.activation = "relu2_no_mul";
  EXPECT_FALSE(resolve(request).is_act_and_mul);
  request.env["VLLM_MOE_ROUTING_SIMULATION_STRATEGY"] = "uniform";
  EXPECT_EQ(resolve(request).routing_method, "Simulated");
}

Deployment resolve_for(const ModelConfig& config) {
  return resolve_deployment(rules(), facts_on_arch("sm90"), find_caller(rules(), config), &config);
}

TEST(Resolve, DeploymentFromACheckpoint) {
  ModelConfig config;
  config.model_type = "deepseek_v4";
  config.quantization = Quantization{"fp8", "", ""};
  config.num_experts = 256;
  Deployment d = resolve_for(config);
  EXPECT_EQ(d.selector, Selector::kDeepseekV4);
  EXPECT_EQ(d.activation, "silu");
  EXPECT_EQ(d.routing_method, "DeepseekV4");
  EXPECT_EQ(d.num_experts, 256);

  config.model_type = "qwen3_moe";
  config.quantization = Quantization{"quark", "", "mxfp4"};
  config.hidden_act = "gelu_pytorch_tanh";
  config.norm_topk_prob = false;
  d = resolve_for(config);
  EXPECT_EQ(d.selector, Selector::kGptOss);
  EXPECT_EQ(d.model_activation, "mxfp4");
  EXPECT_EQ(d.activation, "gelu_pytorch_tanh");
  EXPECT_EQ(d.routing_method, "Default");

  config.model_type = "deepseek_v3";
  config.scoring_func = "sigmoid";
  config.topk_method = "noaux_tc";
  config.n_group = 8;
  EXPECT_EQ(resolve_for(config).routing_method, "DeepSeekV3");

  config = {};
  config.original_gpt_oss = true;
  d = resolve_for(config);
  EXPECT_EQ(d.activation, "swigluoai");
  EXPECT_EQ(d.routing_method, "Renormalize");
}

// "" where the version will do; else the release that is made for it, or "no release".
std::string untested(std::string_view revision, const Layout* layout, std::string_view package,
                     std::string_view version, std::optional<Platform> platform = {}) {
  const auto found =
      untested_version(revision_by_name(revision), layout, package, version, platform);
  if (!found) return "";
  return std::string(found->made_for == nullptr ? "no release" : found->made_for->name);
}

TEST(TestedLibraries, BuildsAndPostReleasesHaveTheSameLayouts) {
  for (const char* version : {"0.6.11", "v0.6.11", "0.6.11.post2", "0.6.11+cu129"}) {
    EXPECT_EQ(untested("0.22.0", &kFlashinferTrtllmLayout, "flashinfer_trtllm", version), "")
        << version;
  }
  EXPECT_EQ(untested("0.22.0", &kFlashinferTrtllmLayout, "flashinfer", "0.6.1"), "no release");
  EXPECT_EQ(pins_text(revision_by_name("0.30.0").pins),
            "flashinfer 0.6.18.post1, triton_kernels 3.5.1 (CUDA), humming-kernels 0.1.12");
}

// A library that the layout's bytes do not depend on is not looked at; one that they depend on is,
// whether the release pins it or not.
TEST(TestedLibraries, OnlyTheLayoutsOwnLibraryCounts) {
  for (const char* version : {"0.6.13", "0.7.1", "99"}) {
    EXPECT_EQ(untested("0.33.0", &kMarlinW4A16Layout, "flashinfer", version), "") << version;
    EXPECT_EQ(untested("0.33.0", nullptr, "flashinfer", version), "") << version;
    EXPECT_EQ(untested("0.22.0", &kTritonHopperLayout, "humming", version), "") << version;
  }
  for (const char* revision : {"0.30.0", "0.33.0"}) {
    EXPECT_EQ(untested(revision, &kTritonHopperS4Layout, "triton_kernels", "3.9"), "no release");
    EXPECT_EQ(untested(revision, &kTritonHopperS4Layout, "triton_kernels", "3.5.1"), "");
  }
  EXPECT_EQ(untested("0.33.0", &kHummingMmaNativeLayout, "humming", "0.1.99"), "no release");
}

}  // namespace
}  // namespace mxfp4
