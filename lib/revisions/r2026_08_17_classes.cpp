// The expert classes of vLLM 017e9f4448 and the backends that try them: the _supports_* hooks of
// fused_moe/experts/*.py, the wrappers of is_supported_config, backend_to_kernel_cls.
#include <array>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

Condition triton_device() {
  const Condition rocm =
      any_of({arch_contains("gfx90a"), arch_contains("gfx942"), arch_contains("gfx950"),
              arch_contains("gfx11"),
              all_of({arch_contains("gfx12"), none_of({arch_contains("gfx1250")})})});
  return all_of({package("triton_kernels"),
                 any_of({all_of({platform_is(Platform::kCuda), capability_at_least(9, 0),
                                 capability_below(11, 0)}),
                         all_of({platform_is(Platform::kRocm), rocm})})});
}

Condition marlin_device() {
  return all_of({platform_is(Platform::kCuda), capability_at_least(7, 5)});
}

SupportRow trtllm_modular() {
  return {.name = "TrtLlmMxfp4ExpertsModular",
          .device =
              all_of({platform_is(Platform::kCuda), capability_family(10), package("flashinfer")}),
          .activation = any_of({activation_in({"swigluoai", "silu"}),
                                all_of({activation_in({"situ"}), package("flashinfer_situ")})}),
          .scheme = none_or({"mxfp8"}),
          .parallel = always(),
          .routing = always()};
}

SupportRow trtllm_monolithic() {
  SupportRow row = trtllm_modular();
  row.name = "TrtLlmMxfp4ExpertsMonolithic";
  row.monolithic = true;
  row.parallel = monolithic_parallel();
  row.routing = routing_in({"DeepSeekV3", "Renormalize", "RenormalizeNaive"});
  return row;
}

SupportRow cutlass() {
  return {
      .name = "FlashInferExperts",
      .device = all_of({platform_is(Platform::kCuda),
                        any_of({capability_is(9, 0), capability_family(10), capability_family(12)}),
                        package("flashinfer"), package("flashinfer_cutlass")}),
      .ungated = true,
      .activation = activation_in(
          {"silu", "gelu_tanh", "relu2_no_mul", "swigluoai", "swigluoai_uninterleave"}),
      .scheme = any_of({all_of({no_key(), capability_is(9, 0)}),
                        all_of({key_in({"mxfp8"}), capability_at_least(10, 0)})}),
      .parallel = always(),
      .routing = always()};
}

SupportRow triton_modular() {
  return {.name = "OAITritonExperts",
          .device = triton_device(),
          .activation = activation_in({"swigluoai"}),
          .scheme = no_key(),
          .parallel = always(),
          .routing = always()};
}

SupportRow triton_monolithic() {
  SupportRow row = triton_modular();
  row.name = "OAITritonMxfp4ExpertsMonolithic";
  row.monolithic = true;
  row.parallel = monolithic_parallel();
  row.routing = routing_in({"Renormalize", "RenormalizeNaive"});
  return row;
}

SupportRow triton_unfused() {
  SupportRow row = triton_modular();
  row.name = "UnfusedOAITritonExperts";
  row.activation =
      activation_in({"silu", "gelu", "swigluoai", "swiglustep", "swigluoai_uninterleave"});
  row.lora = true;
  return row;
}

SupportRow marlin() {
  return {.name = "MarlinExperts",
          .device = marlin_device(),
          .ungated = true,
          .activation = all_but_relu2(),
          .scheme = always(),
          .parallel = not_two_sided_nvlink(),
          .routing = always(),
          .lora = true};
}

SupportRow batched_marlin() {
  SupportRow row = marlin();
  row.name = "BatchedMarlinExperts";
  row.batched = true;
  row.lora = false;
  return row;
}

ExpertClass aiter() {
  ExpertClass row = generic_class(
      {.name = "AiterExperts",
       .device = aiter_moe_enabled(),
       .activation = activation_in({"silu", "gelu", "situ", "swigluoai", "swigluoai_uninterleave"}),
       .scheme = all_of({none_or({"mxfp4"}), arch_contains("gfx950")}),
       .parallel = not_nvlink(),
       .routing = always()});
  row.suffix = ReasonSuffix{none_of({aiter_moe_enabled()}),
                            ". AITER MoE is not enabled \xE2\x80\x94 set VLLM_ROCM_USE_AITER=1 and "
                            "VLLM_ROCM_USE_AITER_MOE=1 to enable it"};
  return row;
}

SupportRow aiter_w4a16() {
  return {.name = "AiterW4A16ExpertsMonolithic",
          .monolithic = true,
          .device = aiter_on({"gfx950", "gfx1250"}),
          .activation = activation_in({"swigluoai", "silu"}),
          .scheme = no_key(),
          .parallel = monolithic_parallel(),
          .routing = routing_in({"Renormalize", "RenormalizeNaive", "DeepseekV4"})};
}

SupportRow aiter_w4a8() {
  return {.name = "AiterW4A8ExpertsMonolithic",
          .monolithic = true,
          .device = aiter_on({"gfx950", "gfx1250"}),
          .activation = activation_in({"swigluoai"}),
          .scheme = key_in({"fp8_per_tensor_static"}),
          .parallel = monolithic_parallel(),
          .routing = routing_in({"Renormalize", "RenormalizeNaive"})};
}

SupportRow deep_gemm() {
  return {.name = "DeepGemmFP4Experts",
          .device = all_of({platform_is(Platform::kCuda), env_number("VLLM_USE_DEEP_GEMM", true),
                            package("deep_gemm"),
                            any_of({capability_family(10), capability_family(12)})}),
          .activation = activation_in({"silu", "swiglustep", "situ"}),
          .scheme = key_in({"fp8_per_block_dynamic"}),
          .parallel = not_nvlink(),
          .routing = always()};
}

SupportRow xpu() {
  return {.name = "XPUExpertsMxFp4",
          .device = platform_is(Platform::kXpu),
          .ungated = true,
          .activation = activation_in({"silu", "gelu", "gelu_tanh", "swigluoai", "relu2_no_mul"}),
          .scheme = none_or({"mxfp4"}),
          .parallel = always(),
          .routing = always()};
}

SupportRow cpu() {
  return {.name = "CPUExpertsMxfp4",
          .monolithic = true,
          // A CPU whose features were not told is taken for one with AMX.
          .device =
              all_of({platform_is(Platform::kCpu), arch_in({"", "x86_64", "x86_64-amx", "amd64"})}),
          .activation = activation_in({"silu", "swigluoai"}),
          .scheme = no_key(),
          .parallel = always(),
          .routing = routing_in({"Default", "Renormalize", "RenormalizeNaive"})};
}

ExpertClass emulation() {
  ExpertClass row =
      generic_class({.name = "OCP_MXQuantizationEmulationTritonExperts",
                     .device = any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm),
                                       platform_is(Platform::kXpu)}),
                     .ungated = true,
                     .activation = all_but_relu2(),
                     .scheme = always(),
                     .parallel = not_nvlink(),
                     .routing = always(),
                     .lora = true,
                     .batch_invariant = true});
  row.checks.insert(row.checks.begin(),
                    {"package", package("quark"), "kernel requires amd-quark package"});
  row.checks.push_back(
      {"experts",
       any_of({none_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)}),
               padded_experts_below(32, 1024)}),
       "kernel's moe_align_block_size requires fewer than 1024 padded experts"});
  return row;
}

ExpertClass humming(std::string_view name, std::string_view gemm_type, std::string_view reason) {
  ExpertClass row = generic_class({.name = name,
                                   .device = all_of({marlin_device(), package("humming")}),
                                   .ungated = true,
                                   .activation = all_but_relu2(),
                                   .scheme = none_or({"mxfp4", "mxfp8", "fp8_per_token"}),
                                   .parallel = always(),
                                   .routing = always(),
                                   .batched = gemm_type == "grouped_masked",
                                   .batch_invariant = true});
  row.checks.push_back({"gemm type", gemm_type_is(gemm_type), reason});
  return row;
}

}  // namespace

Condition uses_all2all() {
  return all_of({expert_parallel(), any_of({dp_above_one(), pcp_above_one(), sp_above_one()})});
}

std::vector<ExpertClass> classes() {
  return {
      generic_class(trtllm_monolithic()),
      generic_class(trtllm_modular()),
      generic_class(cutlass()),
      generic_class(triton_monolithic()),
      generic_class(triton_modular()),
      generic_class(triton_unfused()),
      generic_class(marlin()),
      generic_class(batched_marlin()),
      aiter(),
      generic_class(aiter_w4a16()),
      generic_class(aiter_w4a8()),
      generic_class(deep_gemm()),
      generic_class(xpu()),
      generic_class(cpu()),
      emulation(),
      humming("BatchedHummingGroupedExperts", "grouped_masked",
              "preferred gemm type {gemm_type} != supported gemm type grouped_masked"),
      humming("HummingGroupedExperts", "grouped_contiguous",
              "preferred gemm type {gemm_type} != supported gemm type grouped_contiguous"),
      humming("HummingIndexedExperts", "indexed",
              "preferred gemm type {gemm_type} != supported gemm type indexed"),
  };
}

std::span<const BackendRow> backends() {
  using enum Backend;
  static const std::array kRows = {
      BackendRow{NONE, "None", "", {}},
      BackendRow{DEEPGEMM_MXFP4, "DEEPGEMM_MXFP4", "fp8_per_block_dynamic", {"DeepGemmFP4Experts"}},
      BackendRow{FLASHINFER_TRTLLM_MXFP4_MXFP8,
                 "FLASHINFER_TRTLLM_MXFP4_MXFP8",
                 "mxfp8",
                 {"TrtLlmMxfp4ExpertsMonolithic", "TrtLlmMxfp4ExpertsModular"}},
      BackendRow{FLASHINFER_TRTLLM_MXFP4_BF16,
                 "FLASHINFER_TRTLLM_MXFP4_BF16",
                 "",
                 {"TrtLlmMxfp4ExpertsMonolithic", "TrtLlmMxfp4ExpertsModular"}},
      BackendRow{FLASHINFER_CUTLASS_MXFP4_MXFP8,
                 "FLASHINFER_CUTLASS_MXFP4_MXFP8",
                 "mxfp8",
                 {"FlashInferExperts"}},
      BackendRow{FLASHINFER_CUTLASS_MXFP4_BF16,
                 "FLASHINFER_CUTLASS_MXFP4_BF16",
                 "",
                 {"FlashInferExperts"}},
      BackendRow{BATCHED_MARLIN, "BATCHED_MARLIN", "", {"BatchedMarlinExperts"}},
      BackendRow{MARLIN, "MARLIN", "", {"MarlinExperts"}},
      BackendRow{AITER_MXFP4_BF16,
                 "AITER_MXFP4_BF16",
                 "",
                 {"AiterExperts", "AiterW4A16ExpertsMonolithic"}},
      BackendRow{AITER_MXFP4_FP8,
                 "AITER_MXFP4_FP8",
                 "fp8_per_tensor_static",
                 {"AiterW4A8ExpertsMonolithic"}},
      BackendRow{AITER_MXFP4_MXFP4, "AITER_MXFP4_MXFP4", "mxfp4", {"AiterExperts"}},
      BackendRow{TRITON, "TRITON", "", {"OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts"}},
      BackendRow{TRITON_UNFUSED, "TRITON_UNFUSED", "", {"UnfusedOAITritonExperts"}},
      BackendRow{XPU, "XPU", "", {"XPUExpertsMxFp4"}},
      BackendRow{CPU, "CPU", "", {"CPUExpertsMxfp4"}},
      BackendRow{EMULATION,
                 "EMULATION",
                 "",
                 {"OCP_MXQuantizationEmulationTritonExperts"},
                 /*survives_any_key=*/true},
      BackendRow{
          HUMMING,
          "HUMMING",
          "",
          {"BatchedHummingGroupedExperts", "HummingGroupedExperts", "HummingIndexedExperts"}},
  };
  return kRows;
}

}  // namespace mxfp4::r2026_08_17
