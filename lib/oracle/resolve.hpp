// Completes the facts that a user gave about a deployment, which may be few: flags win over a
// target file, both over the checkpoint, and the rule set knows the rest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/core/deployment.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

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

// The platform that an architecture's name means; empty for one that is not known.
[[nodiscard]] std::optional<Platform> platform_of_arch(std::string_view arch);

// Whether rules tell the platform's devices apart by architecture: CUDA's and ROCm's.
[[nodiscard]] bool has_capability(Platform platform);

// A moe_backend string as the engine's command line normalises it; empty when it refuses
// the string.
[[nodiscard]] std::optional<std::string> moe_backend_option(const RuleSet& rules,
                                                            std::string_view text);
[[nodiscard]] std::string normalize_moe_backend(std::string_view text);

// The routing method that the engine derives from model parameters.
[[nodiscard]] std::string_view derive_routing(const RuleSet& rules, const RoutingFacts& facts);

}  // namespace mxfp4
