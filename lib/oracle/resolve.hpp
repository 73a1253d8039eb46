// Completes the facts that a user told of a deployment, which may be few: flags win over a target
// file, both over the checkpoint, and the rule set knows the rest.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The facts of a deployment as told; empty: not told.
struct DeploymentFacts {
  std::optional<std::string> engine_version;  // of vLLM on the serving machine
  std::optional<std::string> cuda_compiler;   // version of the one that humming-kernels finds there
  std::optional<Platform> platform;
  std::optional<std::string> arch;
  bool needs_arch = true;  // false: the backend is already known, so no device test will ask
  std::optional<std::set<std::string>> libs;
  std::map<std::string, std::string> lib_versions;  // of those libs whose version was told
  std::set<std::string> absent_libs;                // taken away from libs or from the stock set
  std::map<std::string, std::string> env;           // of the serving process
  std::optional<Selector> selector;
  std::optional<std::string> moe_backend;
  std::optional<std::string> activation_override;
  std::optional<std::string> weight_override;
  std::optional<std::string> activation;
  std::optional<std::string> routing_method;
  std::optional<bool> lora;
  std::optional<int64_t> tp_size;
  std::optional<int64_t> pcp_size;
  std::optional<int64_t> dp_size;
  std::optional<bool> enable_expert_parallel;
  std::optional<std::string> all2all_backend;
  std::optional<bool> enable_eplb;
  std::optional<bool> sequence_parallel;
};

// The serving process simulates routing when this variable is set.
inline constexpr std::string_view kRoutingVariable = "VLLM_MOE_ROUTING_SIMULATION_STRATEGY";

// `first` where it says something, else `second`; environments are joined, `first` winning.
[[nodiscard]] DeploymentFacts merge_facts(DeploymentFacts first, DeploymentFacts second);

// The platform follows from the arch where it can ("sm90" cuda, "gfx950" rocm, "x86_64" cpu).
// `caller` and `config` are the checkpoint's, null without one. The moe_backend string is
// lower-cased and its '-' become '_', as the engine does. Throws Error::usage for missing or
// contradictory facts, with the key "platform" if platform and arch do not fit each other, and for
// unknown packages.
[[nodiscard]] Deployment resolve_deployment(const RuleSet& rules, const DeploymentFacts& facts,
                                            const CallerRow* caller, const ModelConfig* config);

// Whether rules tell the platform's devices apart by architecture: CUDA's and ROCm's.
[[nodiscard]] bool has_capability(Platform platform);

// A moe_backend string as the engine's command line normalises it; empty when it refuses the string.
[[nodiscard]] std::optional<std::string> moe_backend_option(const RuleSet& rules,
                                                            std::string_view text);
[[nodiscard]] std::string normalize_moe_backend(std::string_view text);

// The routing method that the engine derives from model parameters.
[[nodiscard]] std::string_view derive_routing(const RuleSet& rules, const RoutingFacts& facts);

}  // namespace mxfp4
