// Names of vLLM 017e9f4448 and what they stand for, where they differ from the revision before:
// quantization keys and shorthands (config/quantization.py), activations
// (fused_moe/activation.py), routing methods (fused_moe/config.py), all-to-all backends
// (config/parallel.py), moe_backend strings (config/kernel.py), kernel packages (requirements/).
#include <array>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"

namespace mxfp4::r2026_08_17 {

std::span<const ActivationKeyRow> keys() {
  static constexpr std::array kRows = {
      ActivationKeyRow{"fp8_per_tensor_static",
                       "QuantKey({fp8},scale(f32,static,per_tensor),symmetric)"},
      ActivationKeyRow{"fp8_per_tensor_dynamic",
                       "QuantKey({fp8},scale(f32,dynamic,per_tensor),symmetric)"},
      ActivationKeyRow{"fp8_per_token", "QuantKey({fp8},scale(f32,dynamic,per_token),symmetric)"},
      ActivationKeyRow{"fp8_per_channel_static",
                       "QuantKey({fp8},scale(f32,static,per_channel),symmetric)"},
      ActivationKeyRow{"fp8_per_block_static",
                       "QuantKey({fp8},scale(f32,static,GroupShape(row=128, col=128)),symmetric)"},
      ActivationKeyRow{"fp8_per_block_dynamic",
                       "QuantKey({fp8},scale(f32,dynamic,GroupShape(row=1, col=128)),symmetric)"},
      ActivationKeyRow{"mxfp8",
                       "QuantKey({fp8},scale(u8,dynamic,GroupShape(row=1, col=32)),symmetric)"},
      ActivationKeyRow{"mxfp4",
                       "QuantKey(u8,scale(u8,dynamic,GroupShape(row=1, col=32)),symmetric)"},
      ActivationKeyRow{"int8_per_channel_static",
                       "QuantKey(i8,scale(f32,static,per_channel),symmetric)"},
  };
  return kRows;
}

std::span<const std::string_view> activations() {
  static constexpr std::array<std::string_view, 12> kNames = {"silu",
                                                              "gelu",
                                                              "gelu_tanh",
                                                              "relu2",
                                                              "swigluoai",
                                                              "situ",
                                                              "swigluoai_uninterleave",
                                                              "swiglustep",
                                                              "silu_no_mul",
                                                              "gelu_no_mul",
                                                              "gelu_tanh_no_mul",
                                                              "relu2_no_mul"};
  return kNames;
}

std::span<const NumberedName> routing_methods() {
  static constexpr std::array kRows = {
      NumberedName{"Default", 0},          NumberedName{"Renormalize", 1},
      NumberedName{"DeepSeekV3", 2},       NumberedName{"Llama4", 3},
      NumberedName{"RenormalizeNaive", 4}, NumberedName{"TopK", 5},
      NumberedName{"SigmoidRenorm", 6},    NumberedName{"MiniMax2", 7},
      NumberedName{"Sigmoid", 8},          NumberedName{"Unspecified", 9},
      NumberedName{"DeepseekV4", 100},     NumberedName{"Custom", 101},
      NumberedName{"Simulated", 102},
  };
  return kRows;
}

std::span<const std::string_view> all2all_backends() {
  static constexpr std::array<std::string_view, 10> kNames = {"allgather_reducescatter",
                                                              "deepep_high_throughput",
                                                              "deepep_low_latency",
                                                              "deepep_v2",
                                                              "mori_high_throughput",
                                                              "mori_low_latency",
                                                              "nixl_ep",
                                                              "flashinfer_all2allv",
                                                              "flashinfer_nvlink_two_sided",
                                                              "flashinfer_nvlink_one_sided"};
  return kNames;
}

std::span<const std::string_view> packages() {
  static constexpr std::array<std::string_view, 8> kNames = {
      "flashinfer",      "flashinfer_cutlass",
      "flashinfer_situ", "triton_kernels",
      "deep_gemm",       "aiter",
      "humming",         "quark"};
  return kNames;
}

std::span<const StockRow> stock_packages() {
  static const std::array kRows = {
      StockRow{Platform::kCuda,
               {"flashinfer", "flashinfer_cutlass", "flashinfer_situ", "triton_kernels",
                "deep_gemm", "humming"}},
      StockRow{Platform::kRocm, {"triton_kernels", "aiter", "quark"}},
  };
  return kRows;
}

std::span<const std::string_view> option_names() {
  static constexpr std::array<std::string_view, 17> kNames = {"auto",
                                                              "triton",
                                                              "batched_triton",
                                                              "deep_gemm",
                                                              "deep_gemm_mega_moe",
                                                              "cutlass",
                                                              "flashinfer_trtllm",
                                                              "flashinfer_cutlass",
                                                              "flashinfer_cutedsl",
                                                              "flashinfer_b12x",
                                                              "marlin",
                                                              "humming",
                                                              "triton_unfused",
                                                              "aiter",
                                                              "flydsl",
                                                              "hpc",
                                                              "emulation"};
  return kNames;
}

std::span<const OnlineShorthand> online_shorthands() {
  static constexpr std::array kRows = {
      OnlineShorthand{"fp8_per_tensor", "fp8_per_tensor_static", "fp8_per_tensor_static"},
      OnlineShorthand{"fp8_per_block", "fp8_per_block_static", "fp8_per_block_static"},
      OnlineShorthand{"fp8_per_channel", "fp8_per_channel_static", "fp8_per_channel_static"},
      OnlineShorthand{"mxfp8", "mxfp8", "mxfp8"},
      OnlineShorthand{"mxfp4", "mxfp4_static", "mxfp4_static"},
      OnlineShorthand{"int8_per_channel_weight_only", "", "int8_per_channel_static"},
      OnlineShorthand{"nvfp4_per_token", "", "nvfp4_static"},
  };
  return kRows;
}

// get_routing_method_type.
std::span<const RoutingRow> routing() {
  using Facts = RoutingFacts;
  static constexpr std::array kRows = {
      RoutingRow{[](const Facts& f) { return f.scoring == "sqrtsoftplus" && f.renormalize; },
                 "sqrtsoftplus, renormalize", "DeepseekV4"},
      RoutingRow{[](const Facts& f) { return f.scoring == "sqrtsoftplus"; }, "sqrtsoftplus",
                 "Unspecified"},
      RoutingRow{[](const Facts& f) {
                   return f.score_bias && f.scoring == "sigmoid" && f.renormalize &&
                          f.expert_groups > 0;
                 },
                 "score bias, sigmoid, renormalize, expert groups", "DeepSeekV3"},
      RoutingRow{[](const Facts& f) {
                   return f.score_bias && f.scoring == "sigmoid" && f.renormalize &&
                          f.scaling_factor.value_or(1.0) == 1.0;
                 },
                 "score bias, sigmoid, renormalize, routed scaling factor 1", "MiniMax2"},
      RoutingRow{[](const Facts& f) { return f.score_bias; }, "score bias", "Unspecified"},
      RoutingRow{[](const Facts& f) { return f.scoring == "sigmoid" && f.renormalize; },
                 "sigmoid, renormalize", "SigmoidRenorm"},
      RoutingRow{[](const Facts& f) { return f.scoring == "sigmoid"; }, "sigmoid", "Sigmoid"},
      RoutingRow{[](const Facts& f) { return f.scoring == "softmax" && f.renormalize; },
                 "softmax, renormalize", "RenormalizeNaive"},
      RoutingRow{[](const Facts& f) { return f.scoring == "softmax"; }, "softmax", "Default"},
      RoutingRow{[](const Facts&) { return true; }, "otherwise", "Unspecified"},
  };
  return kRows;
}

}  // namespace mxfp4::r2026_08_17
