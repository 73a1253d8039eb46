// Conditions on knobs and architectures that layout rows of several revisions share. `holds` throws
// Error::usage for a knob value that the engine does not know.
#pragma once

#include "lib/core/deployment.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

[[nodiscard]] inline bool gfx950(const Target& t) { return t.arch.starts_with("gfx950"); }
[[nodiscard]] inline bool gfx950_in_small_world(const Target& t) {
  return gfx950(t) && t.world_size <= 2;
}
// False on CUDA and ROCm without an arch: the layout depends on it.
[[nodiscard]] inline bool no_swizzle(const Target& t) {
  if (t.platform == Platform::kCuda) return cuda_capability(t.arch).has_value();
  return t.platform != Platform::kRocm || !t.arch.empty();
}
[[nodiscard]] inline bool gfx1250(const Target& t) { return t.arch.starts_with("gfx1250"); }
[[nodiscard]] inline bool on_rocm(const Target& t) { return t.platform == Platform::kRocm; }
[[nodiscard]] inline bool arch_known(const Target& t) { return !t.arch.empty(); }
[[nodiscard]] inline bool situ(const Target& t) { return arch_known(t) && t.activation == "situ"; }
// How vLLM's switches and AITER's read a variable: on for "1" and "true".
[[nodiscard]] bool reads_as_on(std::string_view value);
[[nodiscard]] inline bool reads_as_off(std::string_view value) { return !reads_as_on(value); }

inline constexpr AskedVariable kAiterOn{"VLLM_ROCM_USE_AITER", reads_as_on};
inline constexpr AskedVariable kAiterMoeOn{"VLLM_ROCM_USE_AITER_MOE", reads_as_on, true};

// The arch predicates of quantization/utils/mxfp4_utils.py, _swizzle_mxfp4. To 0.23.0 the size of
// the world does not count.
inline constexpr TargetCondition kHopper{
    "CUDA capability 9.0", [](const Target& t) { return cuda_capability(t.arch) == 90; }};
inline constexpr TargetCondition kBlackwellUp{
    "CUDA capability 10.0 and above",
    [](const Target& t) { return cuda_capability(t.arch).value_or(0) >= 100; }};
inline constexpr TargetCondition kGfx950{"gfx950", gfx950};
inline constexpr TargetCondition kNoSwizzleInAnyWorld{
    "CUDA capability below 9.0, other ROCm, other platforms", no_swizzle};
inline constexpr TargetCondition kCapability12{
    "CUDA capability 12.x",
    [](const Target& t) { return cuda_capability(t.arch).value_or(0) / 10 == 12; }};
inline constexpr TargetCondition kCdna4{"gfx950, world size up to 2", gfx950_in_small_world};
inline constexpr TargetCondition kGfx1250{"gfx1250", gfx1250};
// The architectures beside gfx950 on which the bytes of AITER_MXFP4_FP8 in 0.21.0 to 0.23.0 were
// executed. Its class refuses both, so only a forced backend comes here.
inline constexpr TargetCondition kGfx942OrGfx1250{
    "gfx942 or gfx1250",
    [](const Target& t) { return t.arch.starts_with("gfx942") || gfx1250(t); }};
inline constexpr TargetCondition kRocm{"rocm", on_rocm};
inline constexpr TargetCondition kArchKnown{"any other arch", arch_known};
// CPUs with and without AMX get the same bytes: vLLM builds its packing operators for AVX-512 BF16.
// A release's class says on which CPUs it chooses the backend.
inline constexpr TargetCondition kNoCpuKernels{
    "arch other than x86-64 with AMX or AVX-512 BF16", [](const Target& t) {
      return arch_known(t) && t.arch != "x86_64" && t.arch != "x86_64-amx" &&
             t.arch != "x86_64-avx512" && t.arch != "amd64";
    }};
inline constexpr TargetCondition kSitu{"activation situ", situ};
// AITER's own variable, in 0.27.0 and 0.27.1.
inline constexpr TargetCondition kSituAitersSwitch{
    "activation situ, AITER_SITUV2_A8W4", situ, {{{"AITER_SITUV2_A8W4", reads_as_on}}}};
// By the variable of 2026-08-17 to 0.30.0.
inline constexpr TargetCondition kSituA8w4Switch{
    "activation situ, VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4 and AITER MoE on",
    situ,
    {{{"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", reads_as_on}, kAiterOn, kAiterMoeOn}}};
// The DeepGEMM in the wheels of 0.24.0, 0.27.0 and 0.27.1, executed as on 12.0 and 12.1, asserts in
// csrc/apis/layout.hpp. That of 0.25.0 to 0.26.0, and from 0.28.0 on, packs scales as on 10.x.
inline constexpr LayoutRow kNoDeepgemmOn12 = {
    Backend::DEEPGEMM_MXFP4,
    {},
    kCapability12,
    nullptr,
    "this release's DeepGEMM has no order of scales for capability 12.x: loading stops with "
    "RuntimeError",
    "RuntimeError"};
inline constexpr std::string_view kNoCpuKernelsRefusal =
    "the CPU backend needs x86-64 with AMX or AVX-512 BF16";

}  // namespace mxfp4
