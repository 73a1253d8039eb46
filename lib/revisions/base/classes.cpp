// The expert classes of vLLM 0.21.0 and the backends that try them: the _supports_* hooks of
// fused_moe/experts/*.py, FusedMoEParallelConfig's derived properties, backend_to_kernel_cls.
#include <vector>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::base {
namespace {

Condition not_nvlink() {
  return not_over(
      {"flashinfer_all2allv", "flashinfer_nvlink_two_sided", "flashinfer_nvlink_one_sided"});
}

Condition renormalizing() { return routing_in({"Renormalize", "RenormalizeNaive"}); }

Condition trtllm_device() {
  return all_of({platform_is(Platform::kCuda), capability_family(10), package("flashinfer")});
}

// ROCm's capabilities count as CUDA's do: gfx10 passes and gfx11 does not.
Condition triton_device() {
  return all_of({any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)}),
                 package("triton_kernels"), capability_at_least(9, 0), capability_below(11, 0)});
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

SupportRow aiter() {
  return {.name = "AiterExperts",
          .device = aiter_moe_enabled(kAiterDevices),
          .activation = activation_in({"silu", "gelu", "swigluoai"}),
          .scheme = all_of({no_key(), arch_contains("gfx950")}),
          .parallel = not_nvlink(),
          .routing = always()};
}

SupportRow aiter_w4a8() {
  return {.name = "AiterW4A8ExpertsMonolithic",
          .monolithic = true,
          .device = all_of({aiter_enabled(kAiterDevices), arch_contains("gfx950")}),
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
      generic_class(aiter()),
      generic_class(aiter_w4a8()),
      generic_class(deep_gemm()),
      generic_class(xpu()),
      generic_class(emulation()),
      humming("BatchedHummingGroupedExperts", batched_format(), always()),
      humming("HummingGroupedExperts", none_of({batched_format()}), prefers_grouped()),
      humming("HummingIndexedExperts", none_of({batched_format()}), none_of({prefers_grouped()})),
  };
}

std::vector<BackendRow> backends() {
  using enum Backend;
  return {
      {NONE, "None", "", {}},
      {DEEPGEMM_MXFP4, "DEEPGEMM_MXFP4", "fp8_per_block_dynamic", {"DeepGemmFP4Experts"}},
      {FLASHINFER_TRTLLM_MXFP4_MXFP8,
       "FLASHINFER_TRTLLM_MXFP4_MXFP8",
       "mxfp8",
       {"TrtLlmMxfp4ExpertsMonolithic", "TrtLlmMxfp4ExpertsModular"}},
      {FLASHINFER_TRTLLM_MXFP4_BF16,
       "FLASHINFER_TRTLLM_MXFP4_BF16",
       "",
       {"TrtLlmMxfp4ExpertsMonolithic", "TrtLlmMxfp4ExpertsModular"}},
      {FLASHINFER_CUTLASS_MXFP4_MXFP8,
       "FLASHINFER_CUTLASS_MXFP4_MXFP8",
       "mxfp8",
       {"FlashInferExperts"}},
      {FLASHINFER_CUTLASS_MXFP4_BF16, "FLASHINFER_CUTLASS_MXFP4_BF16", "", {"FlashInferExperts"}},
      {BATCHED_MARLIN, "BATCHED_MARLIN", "", {"BatchedMarlinExperts"}},
      {MARLIN, "MARLIN", "", {"MarlinExperts"}},
      {AITER_MXFP4_BF16, "AITER_MXFP4_BF16", "", {"AiterExperts"}},
      {AITER_MXFP4_FP8, "AITER_MXFP4_FP8", "fp8_per_tensor_static", {"AiterW4A8ExpertsMonolithic"}},
      {TRITON, "TRITON", "", {"OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts"}},
      {TRITON_UNFUSED, "TRITON_UNFUSED", "", {"UnfusedOAITritonExperts"}},
      {XPU, "XPU", "", {"XPUExpertsMXFp4"}},
      {.backend = EMULATION,
       .value = "EMULATION",
       .key = "",
       .classes = {"OCP_MXQuantizationEmulationTritonExperts"},
       .survives_any_key = true,
       .emulates = true},
      {.backend = HUMMING,
       .value = "HUMMING",
       .key = "",
       .classes = {kHummingClasses.begin(), kHummingClasses.end()},
       .asks_compiler = true,
       .required_package = "humming",
       .import_failure = {"ModuleNotFoundError", "No module named 'humming'"}},
  };
}

}  // namespace mxfp4::base
