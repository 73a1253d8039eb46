// A model's config.json as far as it concerns MoE layers, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// How the modules that match a pattern are quantized: a glob on a module's path, or, without a star,
// names that contain the path. `refusal` says why that is not MXFP4 as the reference supports it; it
// matters only where experts match the pattern.
struct ModuleQuantization {
  std::string pattern;
  std::string activation;  // as Quantization::activation
  std::string refusal;     // "layer_quant_config.*: weight.dtype: fp6_e2m3 ..."; empty: MXFP4
};

// What config.json says of the weights' quantization.
struct Quantization {
  std::string name;  // quant_method as written: "mxfp4", "quark", "compressed-tensors", "fp8", ...
  std::string expert_dtype;  // DeepSeek-V4: "fp4" (the default) or "fp8"
  // How activations are quantized. Quark: one of "", "fp8_per_tensor_static", "mxfp4", "fp6".
  // compressed-tensors: only dynamic FP8, as "fp8_per_token", "fp8_per_block_dynamic" (groups of
  // 128), "fp8_per_group_32" or "fp8_per_group" (others); anything else is ""; "several" where
  // groups that may hold the experts disagree.
  std::string activation;
  std::vector<ModuleQuantization> rules{};  // Quark's: the first that matches the experts decides
  std::string format{};  // compressed-tensors: "mxfp4-pack-quantized", ...; empty: not said
  // The key that makes an FP8 model's routed experts MXFP4: Ling's or MiMo-V2.6's; empty:
  // none does.
  std::string routed_experts{};
  bool leaves_shared_experts = false;  // Quark's exclude speaks of the shared experts
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
