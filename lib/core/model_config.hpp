// What a model's config.json says about its MoE layers, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mxfp4 {

// Quantization method families that store MXFP4 experts.
struct QuantMethod {
  std::string name;  // quant_method as written: "mxfp4", "quark", "compressed-tensors", "fp8", ...
  std::string expert_dtype;  // DeepSeek-V4: "fp4" (the default) or "fp8"
  // Quark: how activations are quantized; one of "", "fp8_per_tensor_static", "mxfp4", "fp6".
  std::string activation;
};

// Fields absent from the file are empty. Sizes are those of the whole model, unsharded.
struct ModelConfig {
  std::string model_type;
  std::optional<QuantMethod> quant;
  std::optional<int64_t> hidden_size;
  std::optional<int64_t> intermediate_size;  // of one expert
  std::optional<int64_t> num_experts;
  std::optional<int64_t> num_hidden_layers;
  std::optional<int64_t> num_nextn_predict_layers;
  std::optional<int64_t> num_experts_per_tok;
  std::optional<int64_t> n_group;
  std::optional<int64_t> num_hash_layers;
  std::optional<bool> norm_topk_prob;
  std::string hidden_act;
  std::string scoring_func;
  std::string topk_method;
  bool original_gpt_oss = false;  // the original (not hub) form of gpt-oss
};

}  // namespace mxfp4
