// Names of vLLM 0.21.0 and what they stand for: quantization keys (quantization/utils/
// quant_utils.py, config/quantization.py), activations (fused_moe/activation.py), routing methods
// (fused_moe/config.py), all-to-all backends (config/parallel.py), kernel packages.
#include <vector>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"

namespace mxfp4::base {

std::vector<ActivationKeyRow> keys() {
  return {
      {"fp8_per_tensor_static", "QuantKey({fp8},scale(f32,static,per_tensor),symmetric)"},
      {"fp8_per_tensor_dynamic", "QuantKey({fp8},scale(f32,dynamic,per_tensor),symmetric)"},
      {"fp8_per_token", "QuantKey({fp8},scale(f32,dynamic,per_token),symmetric)"},
      {"fp8_per_block_static",
       "QuantKey({fp8},scale(f32,static,GroupShape(row=128, col=128)),symmetric)"},
      {"fp8_per_block_dynamic",
       "QuantKey({fp8},scale(f32,dynamic,GroupShape(row=1, col=128)),symmetric)"},
      {"mxfp8", "QuantKey({fp8},scale(u8,dynamic,GroupShape(row=1, col=32)),symmetric)"},
      {"mxfp4", "QuantKey(u8,scale(u8,dynamic,GroupShape(row=1, col=32)),symmetric)"},
  };
}

std::vector<Fp8TextRow> fp8_texts() {
  return {
      {all_of({platform_is(Platform::kRocm), arch_contains("gfx94")}), "f8e4m3fnuz"},
      {always(), "f8e4m3fn"},
  };
}

std::vector<std::string_view> activations() {
  return {
      "silu",        "gelu",        "gelu_tanh",        "relu2",       "swigluoai", "swiglustep",
      "silu_no_mul", "gelu_no_mul", "gelu_tanh_no_mul", "relu2_no_mul"};
}

std::vector<NameAlias> activation_aliases() { return {{"gelu_pytorch_tanh", "gelu_tanh"}}; }

std::vector<NumberedName> routing_methods() {
  return {
      {"Default", 0},          {"Renormalize", 1},  {"DeepSeekV3", 2},    {"Llama4", 3},
      {"RenormalizeNaive", 4}, {"TopK", 5},         {"SigmoidRenorm", 6}, {"MiniMax2", 7},
      {"Unspecified", 8},      {"DeepseekV4", 100}, {"Custom", 101},      {"Simulated", 102},
  };
}

std::vector<std::string_view> all2all_backends() {
  return {"allgather_reducescatter",
          "deepep_high_throughput",
          "deepep_low_latency",
          "mori",
          "nixl_ep",
          "flashinfer_all2allv",
          "flashinfer_nvlink_two_sided",
          "flashinfer_nvlink_one_sided"};
}

std::vector<NameAlias> all2all_aliases() {
  return {{"naive", "allgather_reducescatter"}, {"pplx", "allgather_reducescatter"}};
}

std::vector<std::string_view> packages() {
  return {"flashinfer", "flashinfer_cutlass", "triton_kernels", "deep_gemm", "aiter", "humming"};
}

std::vector<StockRow> stock_packages() {
  return {
      {Platform::kCuda, {"flashinfer", "flashinfer_cutlass", "triton_kernels", "deep_gemm"}},
      {Platform::kRocm, {"triton_kernels", "aiter"}},
  };
}

std::vector<std::string_view> option_names() {
  return {"auto",
          "triton",
          "deep_gemm",
          "deep_gemm_mega_moe",
          "cutlass",
          "flashinfer_trtllm",
          "flashinfer_cutlass",
          "flashinfer_cutedsl",
          "marlin",
          "humming",
          "triton_unfused",
          "aiter",
          "emulation"};
}

// get_routing_method_type.
std::vector<RoutingRow> routing() {
  using Facts = RoutingFacts;
  return {
      {[](const Facts& f) { return f.scoring == "sqrtsoftplus" && f.renormalize; },
       "sqrtsoftplus, renormalize", "DeepseekV4"},
      {[](const Facts& f) { return f.scoring == "sqrtsoftplus"; }, "sqrtsoftplus", "Unspecified"},
      {[](const Facts& f) { return f.score_bias && f.scoring == "sigmoid" && f.expert_groups > 0; },
       "score bias, sigmoid, expert groups", "DeepSeekV3"},
      {[](const Facts& f) { return f.score_bias && f.scoring == "sigmoid"; }, "score bias, sigmoid",
       "MiniMax2"},
      {[](const Facts& f) { return f.score_bias; }, "score bias", "Unspecified"},
      {[](const Facts& f) { return f.scoring == "sigmoid" && f.top_k == 1; }, "sigmoid, top-1",
       "Llama4"},
      {[](const Facts& f) { return f.scoring == "sigmoid" && f.renormalize; },
       "sigmoid, renormalize", "SigmoidRenorm"},
      {[](const Facts& f) { return f.scoring == "softmax" && f.renormalize; },
       "softmax, renormalize", "Renormalize"},
      {[](const Facts& f) { return f.scoring == "softmax"; }, "softmax", "Default"},
      {[](const Facts&) { return true; }, "otherwise", "Unspecified"},
  };
}

}  // namespace mxfp4::base
