// The serving machine and process, the target that follows from them, and the oracle's decision.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/layer.hpp"

namespace mxfp4 {

// Sizes of the serving world, as vLLM's ParallelConfig names them. N = tp * pcp * dp ranks.
struct ParallelConfig {
  int64_t tp_size = 1;
  int64_t pcp_size = 1;
  int64_t dp_size = 1;
  bool enable_expert_parallel = false;
  std::string all2all_backend = "allgather_reducescatter";
  bool enable_eplb = false;
  int64_t num_redundant_experts = 0;  // EPLB's, of all ranks together
  bool sequence_parallel = false;
};

// The ranks of the MoE layers, and how they share the experts: all of them by rows or all
// by experts.
struct World {
  int64_t ranks = 1;
  int64_t tp = 1;
  int64_t ep = 1;
};
// More serving ranks are refused: no engine has so many, and a blob lists each of them.
inline constexpr int64_t kMostRanks = 65536;
// Throws Error::input for a size below 1, Error::usage for more than kMostRanks ranks.
[[nodiscard]] World world_of(const ParallelConfig& parallel);

// Which of vLLM's two selection functions runs.
enum class Selector : uint8_t { kGptOss, kDeepseekV4 };
[[nodiscard]] std::string_view selector_name(Selector selector);  // "gpt_oss", "deepseek_v4"
[[nodiscard]] std::optional<Selector> selector_from_name(std::string_view name);

// What the engine's own class of a model, or the platform, does (lib/revisions/class_limits.hpp).
struct ClassLimits {
  bool starts = true;             // the class can be made on the platform
  bool quantization = true;       // the platform takes the quantization
  bool lora = true;               // takes adapters
  bool redundant_experts = true;  // hands EPLB's on to its experts
  bool splits_inputs = true;      // of experts, by tensor parallelism beside data parallelism
  bool few_experts = true;        // starts with fewer experts than ranks of tensor parallelism
};

// The facts that the oracle decides from (vLLM a2c8fc6657, oracle/mxfp4.py and its callees).
struct Deployment {
  Platform platform = Platform::kOther;
  std::string arch;                        // "sm90", "gfx950", "x86_64" or empty
  std::set<std::string> libs;              // kernel packages present on the serving machine
  std::string cuda_compiler;               // version of humming-kernels' there; empty: not known
  std::map<std::string, std::string> env;  // the serving process's environment, nothing else
  Selector selector = Selector::kGptOss;
  std::string moe_backend = "auto";
  std::optional<std::string> activation_override;  // quantization_config.moe.activation, by name
  std::optional<std::string> model_activation;     // the checkpoint's own activation key, by name
  std::optional<std::string> weight_override;      // quantization_config.moe.weight, by name
  std::string activation = "swigluoai";
  bool activation_assumed = false;  // neither a flag nor a config has it
  bool is_act_and_mul = true;
  std::string routing_method = "Renormalize";
  bool lora = false;
  // Facts of the model that some revisions test; a fact that nobody gave is as in gpt-oss.
  std::optional<int64_t> num_experts;        // of the whole model
  std::optional<int64_t> local_experts;      // of one rank
  std::optional<int64_t> hidden_size;        // before rounding
  std::optional<int64_t> intermediate_size;  // of the whole model
  std::optional<int64_t> attention_heads;    // of the whole model
  std::optional<int64_t> kv_heads;
  bool hash_routing = false;             // experts by a table of token numbers
  bool situ_linear_beta = false;         // SiTU has a parameter for its linear part
  std::string scoring_func = "softmax";  // of the router
  bool norm_topk_prob = true;            // the router's weights add up to 1
  bool latent_experts = false;           // the experts work in a smaller space than the model
  bool grouped_topk = false;
  int64_t expert_groups = 1;  // grouped top-k: number of groups; `taken_groups` of them are used
  int64_t taken_groups = 1;
  std::string model_type = "gpt_oss";
  std::string quantization;       // quant_method as the config writes it; empty: not known
  bool half_precision = false;    // the model's type is float16
  bool replaced_experts = false;  // approximate_experts in config.json
  std::string model_class;        // the engine's own class of the model; empty: not known
  ClassLimits limits;             // of that class
  ParallelConfig parallel;
};

// Everything a layout may depend on besides the sizes; fully resolved.
struct Target {
  Backend backend = Backend::NONE;
  Family family = Family::kGptOss;
  Platform platform = Platform::kOther;
  std::string arch;
  int64_t world_size = 1;                    // tensor parallel size of the serving process
  std::string activation;                    // "silu", ...; empty: not known
  std::map<std::string, std::string> knobs;  // params_dtype, marlin_input_dtype, ...
  std::map<std::string, std::string> env;

  // The knob's value, or `fallback` when it was not given.
  [[nodiscard]] std::string knob(std::string_view name, std::string_view fallback) const;
};

// Compute capability of a CUDA arch name "sm90", "sm120" -> 90, 120; empty for anything else.
[[nodiscard]] std::optional<int> cuda_capability(std::string_view arch);

// One question that the oracle asked: the candidate class, the activation key it was asked with,
// and the answer. `reason` is empty when supported.
struct TraceStep {
  std::string candidate;
  std::optional<std::string> key;
  bool supported = false;
  std::string reason;
  // The condition that was not met, in the rule set's words, which outlive every decision.
  std::string_view needs{};
  std::optional<Backend> backend{};  // that the class was asked for; empty: not known
};

// The oracle's answer. A refusal has no backend and carries the reference's error; it is a value
// and not an exception, so that explain and batch can print it.
struct Decision {
  std::optional<Backend> backend;
  std::string experts_class;
  std::string error_type;     // "ValueError", "NotImplementedError", ...
  std::string error_message;  // the reference's text
  std::vector<TraceStep> trace;
  std::vector<std::string> notes;  // known defects and load-time failures, one line each
  std::string revision;
  bool forced = false;                         // --backend: the oracle was not asked
  bool direct = false;                         // the caller decided: the oracle was not asked
  std::map<std::string, std::string> knobs{};  // of the layout, as far as the caller decides them
};

}  // namespace mxfp4
