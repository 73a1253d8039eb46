// A model's config.json as far as it concerns MoE layers, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// How the pattern of a rule is read. kGlob: Quark's, a glob on the module path; without a star, a
// name that contains the path. kName: the whole name of one linear layer. kRegex: a regular
// expression that matches the beginning of that name. kSearch: one that occurs in the module path.
// kBeginning: the beginning of the module path. kAny: every module.
enum class PatternKind : uint8_t { kGlob, kName, kRegex, kSearch, kBeginning, kAny };

// How the modules that match a pattern are quantized. `refusal` says why that is not MXFP4 as the
// reference supports it; it matters only where experts match the pattern.
struct ModuleQuantization {
  std::string pattern;
  std::string activation;  // as Quantization::activation
  std::string refusal;     // "layer_quant_config.*: weight.dtype: fp6_e2m3 ..."; empty: MXFP4
  PatternKind kind = PatternKind::kGlob;
};

// The beginning of a module's name in a checkpoint, and what the engine has in its place.
struct Rename {
  std::string_view from;
  std::string_view to;
};

// The routed experts that a config leaves out of its quantization.
struct Exclusions {
  std::set<int64_t> layers;           // by number
  std::set<std::string> modules;      // by the engine's name of a layer's experts
  std::vector<std::string> patterns;  // regular expressions, matched from the beginning of a name
  bool of_linears = false;            // the names are of expert 0's linear layers
  bool shared_experts = false;        // an entry speaks of the shared experts
};

// What config.json says of the weights' quantization.
struct Quantization {
  std::string name;  // quant_method as written: "mxfp4", "quark", "compressed-tensors", "fp8", ...
  std::string expert_dtype;  // DeepSeek-V4: "fp4" (the default) or "fp8"
  // How activations are quantized. Quark: one of "", "fp8_per_tensor_static", "mxfp4", "fp6".
  // compressed-tensors: only dynamic FP8, as "fp8_per_token", "fp8_per_block_dynamic" (groups of
  // 128), "fp8_per_group_32" or "fp8_per_group" (others); anything else is ""; "several" where it
  // is not known which group of modules the experts are in.
  std::string activation;
  std::vector<ModuleQuantization> rules{};  // the first whose pattern matches a module decides
  std::string format{};  // compressed-tensors: "mxfp4-pack-quantized", ...; empty: not said
  // The key that makes an FP8 model's routed experts MXFP4: Ling's or MiMo-V2.6's; empty:
  // none does.
  std::string routed_experts{};
  Exclusions excluded{};
  // compressed-tensors: modules that no rule matches are not quantized. False, too, where a pattern
  // cannot be read.
  bool named_only = false;
  // Rules and exclusions have the engine's names of modules: renames are applied to a checkpoint's
  // one after the other (hf_to_vllm_mapper), then the block that holds a layer's experts gets the
  // engine's name, unless it is empty.
  std::span<const Rename> renames{};
  std::string checkpoint_block{};  // "block_sparse_moe"
  std::string engine_block{};      // "mlp"
};

// Fields absent from the file are empty. Sizes belong to the whole model, unsharded.
struct ModelConfig {
  std::string file;  // for messages
  std::string model_type;
  std::vector<std::string> architectures;  // the names of the model's class, the wanted one first
  std::optional<Quantization> quantization;
  // The routed experts' sizes; they may work in a smaller space than the rest of the model.
  std::optional<int64_t> hidden_size;
  std::optional<int64_t> intermediate_size;  // of one expert
  std::optional<int64_t> num_experts;
  std::optional<int64_t> draft_experts;  // of a draft stage, where they have their own number
  std::string draft_experts_key = "dspark_n_routed_experts";
  std::string hidden_size_key = "hidden_size";  // the keys that gave these three
  std::string intermediate_size_key = "intermediate_size";
  std::string num_experts_key = "num_experts";
  std::optional<int64_t> num_hidden_layers;
  std::optional<int64_t> num_attention_heads;
  std::optional<int64_t> num_key_value_heads;  // empty too where all heads share a latent space
  std::optional<int64_t> num_nextn_predict_layers;
  std::optional<int64_t> draft_stages;  // that the engine loads, where they are not these layers
  // Which layers have no experts: DeepSeek's and Qwen's keys.
  std::optional<int64_t> first_k_dense_replace;
  std::optional<int64_t> moe_layer_freq;
  std::optional<int64_t> decoder_sparse_step;
  std::vector<int64_t> mlp_only_layers;
  // The layers that have experts, where the config lists or counts them in its own way.
  std::optional<std::vector<int64_t>> moe_layers;
  bool ungated_experts = false;  // two projections: mlp_hidden_act, of the Nemotron models
  std::optional<int64_t> num_experts_per_tok;
  int64_t num_shared_experts = 0;
  // The fewest rows of the intermediate dimension that a rank of the model is given.
  std::optional<int64_t> least_slice;
  std::optional<int64_t> n_group;
  std::optional<bool> use_grouped_topk;  // Kimi's router: groups, and how many of them are taken
  std::optional<int64_t> num_expert_group;
  std::optional<int64_t> topk_group;
  std::optional<int64_t> num_hash_layers;
  std::optional<bool> norm_topk_prob;
  std::optional<double> routed_scaling_factor;
  std::string hidden_act;
  bool situ_linear_beta = false;  // activation_situ_linear_beta is there
  bool latent_experts = false;    // routed_expert_hidden_size is there
  bool half_precision = false;    // torch_dtype or dtype is float16
  bool replaced_experts = false;  // approximate_experts is there
  std::string scoring_func;
  std::string topk_method;
  bool original_gpt_oss = false;   // the original (not hub) form of gpt-oss
  bool quantization_only = false;  // the text was a bare quantization_config object
};

}  // namespace mxfp4
