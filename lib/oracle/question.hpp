// The facts that one support check may look at: the deployment, and those that follow from it under
// a rule set. Conditions (condition.hpp) answer yes or no to a Question; texts with {names} in
// braces are filled from it. Source: vLLM a2c8fc6657, fused_moe/config.py
// (FusedMoEParallelConfig.make), vllm/platforms/ (capabilities), quantization/utils/quant_utils.py
// (QuantKey's text).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/core/deployment.hpp"

namespace mxfp4 {

struct RuleSet;

// Compute capability. ROCm devices have one too: gfx942 reads as 9.4, gfx1201 as 12.0.
struct Capability {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Capability&, const Capability&) = default;
};

// Parallel sizes as a MoE layer sees them: the engine's world flattened into tensor or expert
// parallelism.
struct MoeParallel {
  int64_t tp_size = 1;
  int64_t pcp_size = 1;
  int64_t dp_size = 1;
  int64_t ep_size = 1;
  int64_t sp_size = 1;
  bool use_ep = false;
  std::string all2all_backend;
  bool enable_eplb = false;
};

// Throws Error::input when a size is not positive, their product overflows, or the all-to-all
// backend is unknown to the rule set.
[[nodiscard]] MoeParallel flatten_parallel(const RuleSet& rules, const ParallelConfig& config);

struct Question {
  const RuleSet& rules;
  const Deployment& deployment;
  MoeParallel parallel;
  std::optional<Capability> capability;
  std::string_view activation;            // the name without aliases
  bool uses_all2all = false;              // by the rule set's own definition
  bool batched = false;                   // activation format batched_experts, else standard
  bool gated = true;                      // the MLP has a gate
  std::optional<std::string_view> key{};  // activation quantization key; empty: none
};

// Throws Error::input naming the key when the deployment names an activation, routing method,
// quantization key, all-to-all backend or architecture that the rule set does not know.
[[nodiscard]] Question make_question(const RuleSet& rules, const Deployment& deployment);

// "indexed", "grouped_contiguous", or what the rule set's variable says.
[[nodiscard]] std::string preferred_gemm_type(const Question& question);

// The text form of a key inside the reference's messages; "None" for no key.
[[nodiscard]] std::string key_text(const Question& question, std::optional<std::string_view> key);

// `text` with every {name} replaced, from `extra` first, then from the question: {device},
// {activation}, {weight_key}, {key}, {model_key}, {override}, {parallel}, {routing},
// {routing_name}, {format}, {moe_backend}, {arch}, {all2all}, {aliases}, {gemm_type}, {model_type},
// {num_experts}, {physical_experts}, {ep_size}. Throws Error::internal for another name.
[[nodiscard]] std::string fill_text(
    std::string_view text, const Question& question,
    std::initializer_list<std::pair<std::string_view, std::string_view>> extra = {});

}  // namespace mxfp4
