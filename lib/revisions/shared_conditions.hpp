// Conditions that the expert classes of several revisions share. Sources: vLLM's
// fused_moe/experts/*.py, fused_moe/config.py, vllm/_aiter_ops.py.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "lib/oracle/predicates.hpp"

namespace mxfp4 {

struct LoadFacts;  // of lib/oracle/serving_rows.hpp

// Not over an all-to-all kernel of these backends.
[[nodiscard]] Condition not_over(std::vector<std::string_view> backends);
// Router and experts in one kernel: nothing may be exchanged in between.
[[nodiscard]] Condition monolithic_parallel();

// The devices that AITER's Python helpers know: since 0.27.0 gfx1250, too.
inline constexpr std::array<std::string_view, 2> kAiterDevices = {"gfx942", "gfx950"};
inline constexpr std::array<std::string_view, 3> kAiterDevicesWithGfx1250 = {"gfx942", "gfx950",
                                                                             "gfx1250"};
// AITER is on: its package, its switch, and one of the devices that it knows.
[[nodiscard]] Condition aiter_enabled(std::span<const std::string_view> devices);
// One of these, with gfx1250 among the known devices.
[[nodiscard]] Condition aiter_on(const std::vector<std::string_view>& archs);
// AITER's fused MoE kernels are on too.
[[nodiscard]] Condition aiter_moe_enabled(std::span<const std::string_view> devices);
// A model's shared experts become the last slots of every rank (config_utils.py; the
// models' files).
[[nodiscard]] Condition fuses_shared_experts();
// The same in the models' own files for ROCm that ask the variable only, not whether AITER is on.
[[nodiscard]] Condition fuses_shared_experts_by_variable();

// What Triton's classes ask of the device since 2026-05-18: CUDA from capability 9.0 to below
// `below_major`.0, or one of ROCm's devices. Devices of gfx12 must meet the condition.
[[nodiscard]] Condition triton_device(int below_major, Condition gfx12);
[[nodiscard]] Condition gfx12_but_gfx1250();

// The GPU's capability is below the least that the caller's method asks for.
[[nodiscard]] bool below_minimum_capability(const LoadFacts& facts);

// Classes whose checks change together.
inline constexpr std::array<std::string_view, 3> kTritonClasses = {
    "OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts", "UnfusedOAITritonExperts"};
inline constexpr std::array<std::string_view, 3> kHummingClasses = {
    "BatchedHummingGroupedExperts", "HummingGroupedExperts", "HummingIndexedExperts"};

[[nodiscard]] Condition none_or(std::vector<std::string_view> keys);  // no key, or one of these
// Every activation that the shared helper supports: all but relu2.
[[nodiscard]] Condition all_but_relu2();

}  // namespace mxfp4
