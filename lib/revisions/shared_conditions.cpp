#include "lib/revisions/shared_conditions.hpp"

#include <utility>

namespace mxfp4 {

Condition not_over(std::vector<std::string_view> backends) {
  return none_of({all_of({all2all_in_use(), all2all_backend_in(std::move(backends))})});
}

Condition not_nvlink() {
  return not_over(
      {"flashinfer_all2allv", "flashinfer_nvlink_two_sided", "flashinfer_nvlink_one_sided"});
}

Condition not_two_sided_nvlink() {
  return not_over({"flashinfer_all2allv", "flashinfer_nvlink_two_sided"});
}

Condition monolithic_parallel() { return none_of({all2all_in_use(), eplb(), dp_above_one()}); }

Condition tensor_parallel_only() { return none_of({expert_parallel(), eplb(), dp_above_one()}); }

Condition aiter_enabled() {
  return all_of(
      {platform_is(Platform::kRocm),
       any_of({arch_contains("gfx942"), arch_contains("gfx950"), arch_contains("gfx1250")}),
       package("aiter"), env_switch("VLLM_ROCM_USE_AITER", false)});
}

Condition aiter_on(const std::vector<std::string_view>& archs) {
  std::vector<Condition> any;
  any.reserve(archs.size());
  for (const std::string_view arch : archs) any.push_back(arch_contains(arch));
  return all_of({aiter_enabled(), any_of(std::move(any))});
}

Condition aiter_moe_enabled() {
  return all_of({aiter_enabled(), env_switch("VLLM_ROCM_USE_AITER_MOE", true)});
}

Condition none_or(std::vector<std::string_view> keys) {
  return any_of({no_key(), key_in(std::move(keys))});
}

Condition all_but_relu2() { return none_of({activation_in({"relu2"})}); }

}  // namespace mxfp4
