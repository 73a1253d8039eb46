// Conditions that the expert classes of several revisions share. Sources: vLLM's
// fused_moe/experts/*.py, fused_moe/config.py, vllm/_aiter_ops.py.
#pragma once

#include <string_view>
#include <vector>

#include "lib/oracle/predicates.hpp"

namespace mxfp4 {

// Not over an all-to-all kernel of these backends.
[[nodiscard]] Condition not_over(std::vector<std::string_view> backends);
[[nodiscard]] Condition not_nvlink();
[[nodiscard]] Condition not_two_sided_nvlink();
// Router and experts in one kernel: nothing may be exchanged in between.
[[nodiscard]] Condition monolithic_parallel();
// As above, and no expert parallelism at all.
[[nodiscard]] Condition tensor_parallel_only();

// AITER is on: its package, its switch, and one of the devices that it knows.
[[nodiscard]] Condition aiter_enabled();
[[nodiscard]] Condition aiter_on(const std::vector<std::string_view>& archs);
// AITER's fused MoE kernels are on too.
[[nodiscard]] Condition aiter_moe_enabled();

[[nodiscard]] Condition none_or(std::vector<std::string_view> keys);  // no key, or one of these
// Every activation that the shared helper supports: all but relu2.
[[nodiscard]] Condition all_but_relu2();

}  // namespace mxfp4
