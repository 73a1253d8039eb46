// Small hand-made checkpoints for tests of naming styles, and what they ask: why are these tensors
// refused, and does the text say so?
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/load/find_layers.hpp"

namespace mxfp4::test {

// Per-expert tensors of one module: experts of hidden size 64 and intermediate size 32.
struct PerExpert {
  std::string module = "model.layers.0.mlp.experts";
  int64_t experts = 2;
  std::array<std::string, 3> words{"gate_proj", "up_proj", "down_proj"};
  std::string codes = ".weight";
  std::string scales = ".weight_scale";
  DType code_type = DType::kU8;
  DType scale_type = DType::kU8;

  void add(std::vector<NamedTensor>& out) const {
    for (int64_t e = 0; e < experts; ++e) {
      for (const std::string& word : words) {
        const bool down = word == words[2];
        const Shape code_shape = down ? Shape{64, 16} : Shape{32, 32};
        const Shape scale_shape = down ? Shape{64, 1} : Shape{32, 2};
        const std::string name = module + "." + std::to_string(e) + "." + word;
        out.push_back({name + codes, {code_type, code_shape}, "a.safetensors"});
        out.push_back({name + scales, {scale_type, scale_shape}, "a.safetensors"});
      }
    }
  }
};

inline std::vector<NamedTensor> per_expert(const PerExpert& form = {}) {
  std::vector<NamedTensor> out;
  form.add(out);
  return out;
}

inline ModelConfig quantized_config(const std::string& method, const std::string& model_type) {
  ModelConfig config;
  config.file = "config.json";
  config.model_type = model_type;
  config.quantization = Quantization{method, "", "", {}};
  config.hidden_size = 64;
  config.intermediate_size = 32;
  config.num_experts = 2;
  config.num_hidden_layers = 1;
  return config;
}

inline std::string refusal_of_layers(const std::vector<NamedTensor>& tensors,
                                     const ModelConfig* config, const FindOptions& options = {}) {
  try {
    (void)find_expert_layers(tensors, config, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace mxfp4::test
