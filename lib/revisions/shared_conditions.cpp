#include "lib/revisions/shared_conditions.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "lib/oracle/serving_rows.hpp"

namespace mxfp4 {

Condition not_over(std::vector<std::string_view> backends) {
  return none_of({all_of({all2all_in_use(), all2all_backend_in(std::move(backends))})});
}

Condition monolithic_parallel() { return none_of({all2all_in_use(), eplb(), dp_above_one()}); }

Condition arch_contains_any(std::span<const std::string_view> parts) {
  std::vector<Condition> any;
  any.reserve(parts.size());
  for (const std::string_view part : parts) any.push_back(arch_contains(part));
  return any_of(std::move(any));
}

Condition aiter_enabled(std::span<const std::string_view> devices) {
  return all_of({platform_is(Platform::kRocm), arch_contains_any(devices), package("aiter"),
                 env_switch("VLLM_ROCM_USE_AITER", false)});
}

Condition aiter_on(const std::vector<std::string_view>& archs) {
  return all_of({aiter_enabled(kAiterDevicesWithGfx1250), arch_contains_any(archs)});
}

Condition aiter_moe_enabled(std::span<const std::string_view> devices) {
  return all_of({aiter_enabled(devices), env_switch("VLLM_ROCM_USE_AITER_MOE", true)});
}

Condition fuses_shared_experts() {
  return all_of({aiter_moe_enabled(kAiterDevicesWithGfx1250),
                 env_switch("VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS", false)});
}

Condition fuses_shared_experts_by_variable() {
  return all_of({platform_is(Platform::kRocm),
                 env_switch("VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS", false),
                 none_of({expert_parallel_enabled()})});
}

Condition triton_device(int below_major, Condition gfx12) {
  const Condition cuda = all_of(
      {platform_is(Platform::kCuda), capability_at_least(9, 0), capability_below(below_major, 0)});
  const Condition rocm =
      all_of({platform_is(Platform::kRocm),
              any_of({arch_contains("gfx90a"), arch_contains("gfx942"), arch_contains("gfx950"),
                      arch_contains("gfx11"), std::move(gfx12)})});
  return all_of({package("triton_kernels"), any_of({cuda, rocm})});
}

Condition gfx12_but_gfx1250() {
  return all_of({arch_contains("gfx12"), none_of({arch_contains("gfx1250")})});
}

bool below_minimum_capability(const LoadFacts& facts) {
  const std::optional<Capability>& capability = facts.question.capability;
  return facts.caller != nullptr && capability &&
         facts.question.deployment.platform == Platform::kCuda &&
         capability->major * 10 + capability->minor < facts.caller->minimum_capability;
}

Condition none_or(std::vector<std::string_view> keys) {
  return any_of({no_key(), key_in(std::move(keys))});
}

Condition all_but_relu2() { return none_of({activation_in({"relu2"})}); }

}  // namespace mxfp4
