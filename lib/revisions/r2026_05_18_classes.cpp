// The expert classes of vLLM a2c8fc6657 and the backends that try them: the _supports_* hooks of
// fused_moe/experts/*.py, FusedMoEParallelConfig's derived properties, backend_to_kernel_cls.
#include <array>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::r2026_05_18 {
namespace {

Condition renormalizing() { return routing_in({"Renormalize", "RenormalizeNaive"}); }

Condition aiter_enabled() {
  return all_of({platform_is(Platform::kRocm),
                 any_of({arch_contains("gfx942"), arch_contains("gfx950")}), package("aiter"),
                 env_switch("VLLM_ROCM_USE_AITER", false)});
}

Condition trtllm_device() {
  return all_of({platform_is(Platform::kCuda), capability_family(10), package("flashinfer")});
}

Condition triton_device() {
  const Condition rocm =
      any_of({arch_contains("gfx90a"), arch_contains("gfx942"), arch_contains("gfx950"),
              arch_contains("gfx11"), arch_contains("gfx12")});
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
          .device = trtllm_device(),
          .activation = activation_in({"swigluoai", "silu"}),
          .scheme = none_or({"mxfp8"}),
          .parallel = always(),
          .routing = always()};
}

SupportRow trtllm_monolithic() {
  SupportRow row = trtllm_modular();
  row.name = "TrtLlmMxfp4ExpertsMonolithic";
  row.monolithic = true;
  row.parallel = monolithic_parallel();
  row.routing = renormalizing();
  return row;
}

SupportRow cutlass() {
  return {
      .name = "FlashInferExperts",
      .device = all_of({platform_is(Platform::kCuda),
                        any_of({capability_is(9, 0), capability_family(10), capability_family(12)}),
                        package("flashinfer"), package("flashinfer_cutlass")}),
      .ungated = true,
      .activation = activation_in({"silu", "relu2_no_mul", "swigluoai"}),
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
  row.routing = renormalizing();
  return row;
}

SupportRow triton_unfused() {
  SupportRow row = triton_modular();
  row.name = "UnfusedOAITritonExperts";
  row.activation = activation_in({"silu", "gelu", "swigluoai", "swiglustep"});
  row.lora = true;
  return row;
}

SupportRow marlin() {
  return {.name = "MarlinExperts",
          .device = marlin_device(),
          .ungated = true,
          .activation = all_but_relu2(),
          .scheme = always(),
          .parallel = not_nvlink(),
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
  ExpertClass row = generic_class({.name = "AiterExperts",
                                   .device = aiter_moe_enabled(),
                                   .activation = activation_in({"silu", "gelu", "swigluoai"}),
                                   .scheme = all_of({none_or({"mxfp4"}), arch_contains("gfx950")}),
                                   .parallel = not_nvlink(),
                                   .routing = always()});
  row.suffix = ReasonSuffix{none_of({aiter_moe_enabled()}),
                            ". AITER MoE is not enabled \xE2\x80\x94 set VLLM_ROCM_USE_AITER=1 and "
                            "VLLM_ROCM_USE_AITER_MOE=1 to enable it"};
  return row;
}

SupportRow aiter_w4a8() {
  return {.name = "AiterW4A8ExpertsMonolithic",
          .monolithic = true,
          .device = all_of({aiter_enabled(), arch_contains("gfx950")}),
          .activation = activation_in({"swigluoai"}),
          .scheme = key_in({"fp8_per_tensor_static"}),
          .parallel = monolithic_parallel(),
          .routing = renormalizing()};
}

SupportRow deep_gemm() {
  return {.name = "DeepGemmFP4Experts",
          .device = all_of({platform_is(Platform::kCuda), env_number("VLLM_USE_DEEP_GEMM", true),
                            package("deep_gemm"), capability_family(10)}),
          .activation = activation_in({"silu", "swiglustep"}),
          .scheme = key_in({"fp8_per_block_dynamic"}),
          .parallel = not_nvlink(),
          .routing = always()};
}

SupportRow xpu() {
  return {.name = "XPUExpertsMXFp4",
          .device = platform_is(Platform::kXpu),
          .ungated = true,
          .activation = activation_in({"silu", "gelu", "swigluoai", "relu2_no_mul"}),
          .scheme = no_key(),
          .parallel = always(),
          .routing = always()};
}

SupportRow cpu() {
  return {.name = "CPUExpertsMxfp4",
          .monolithic = true,
          .device = platform_is(Platform::kCpu),
          .activation = activation_in({"silu", "swigluoai"}),
          .scheme = no_key(),
          .parallel = always(),
          .routing = routing_in({"Default", "Renormalize", "RenormalizeNaive"})};
}

SupportRow emulation() {
  return {.name = "OCP_MXQuantizationEmulationTritonExperts",
          .device = any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm),
                            platform_is(Platform::kXpu)}),
          .ungated = true,
          .activation = all_but_relu2(),
          .scheme = always(),
          .parallel = not_nvlink(),
          .routing = always(),
          .lora = true,
          .batch_invariant = true};
}

// Humming's own check replaces the shared ones completely.
ExpertClass humming(std::string_view name, Condition format, Condition gemm_type) {
  return {.name = name,
          .checks = {{"format", std::move(format), "activation_format mismatched"},
                     {"gemm type", std::move(gemm_type), "preferred gemm type mismatched"}}};
}

Condition prefers_grouped() {
  return env_is_one_of("VLLM_HUMMING_MOE_GEMM_TYPE", {"grouped", "grouped_contiguous"});
}

}  // namespace

Condition uses_all2all() { return all_of({dp_above_one(), expert_parallel()}); }

Condition batched() {
  return all_of({all2all_in_use(), all2all_backend_in({"deepep_low_latency", "nixl_ep"})});
}

Condition aiter_moe_enabled() {
  return all_of({aiter_enabled(), env_switch("VLLM_ROCM_USE_AITER_MOE", true)});
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
      generic_class(aiter_w4a8()),
      generic_class(deep_gemm()),
      generic_class(xpu()),
      generic_class(cpu()),
      generic_class(emulation()),
      humming("BatchedHummingGroupedExperts", batched_format(), always()),
      humming("HummingGroupedExperts", none_of({batched_format()}), prefers_grouped()),
      humming("HummingIndexedExperts", none_of({batched_format()}), none_of({prefers_grouped()})),
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
      BackendRow{AITER_MXFP4_BF16, "AITER_MXFP4_BF16", "", {"AiterExperts"}},
      BackendRow{AITER_MXFP4_FP8,
                 "AITER_MXFP4_FP8",
                 "fp8_per_tensor_static",
                 {"AiterW4A8ExpertsMonolithic"}},
      BackendRow{AITER_MXFP4_MXFP4, "AITER_MXFP4_MXFP4", "mxfp4", {"AiterExperts"}},
      BackendRow{TRITON, "TRITON", "", {"OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts"}},
      BackendRow{TRITON_UNFUSED, "TRITON_UNFUSED", "", {"UnfusedOAITritonExperts"}},
      BackendRow{XPU, "XPU", "", {"XPUExpertsMXFp4"}},
      BackendRow{CPU, "CPU", "", {"CPUExpertsMxfp4"}},
      BackendRow{EMULATION,
                 "EMULATION",
                 "",
                 {"OCP_MXQuantizationEmulationTritonExperts"},
                 /*survives_any_key=*/true},
      BackendRow{HUMMING,
                 "HUMMING",
                 "",
                 {"BatchedHummingGroupedExperts", "HummingGroupedExperts", "HummingIndexedExperts"},
                 false,
                 "humming",
                 {"ModuleNotFoundError", "No module named 'humming'"}},
  };
  return kRows;
}

}  // namespace mxfp4::r2026_05_18
