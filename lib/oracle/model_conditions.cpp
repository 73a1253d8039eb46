// The conditions that look at the model: its sizes and its config's words. No change of the
// deployment meets them, so they name no facts.
#include <fmt/format.h>

#include "lib/core/checked.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

// The size that the executed tables took where none was given.
constexpr int64_t kAssumedHidden = 2880;

}  // namespace

Condition padded_experts_below(int64_t multiple, int64_t limit) {
  return {fmt::format("experts rounded up to {} < {}", multiple, limit),
          [multiple, limit](const Question& q) {
            const auto& experts = q.deployment.num_experts;
            return !experts || round_up(*experts, multiple) < limit;
          }};
}

Condition hidden_multiple_of(int64_t multiple) {
  return {fmt::format("hidden size a multiple of {}", multiple), [multiple](const Question& q) {
            return q.deployment.hidden_size.value_or(kAssumedHidden) % multiple == 0;
          }};
}

Condition expert_parallel_shape(int64_t ep_size, int64_t num_experts, int64_t hidden_size,
                                int64_t intermediate_size) {
  return {fmt::format("{} experts over {} ranks, hidden size {}, intermediate size {}", num_experts,
                      ep_size, hidden_size, intermediate_size),
          [=](const Question& q) {
            const Deployment& d = q.deployment;
            const int64_t share = num_experts / ep_size;
            return q.parallel.use_ep && q.parallel.ep_size == ep_size &&
                   d.num_experts == num_experts && d.local_experts.value_or(share) == share &&
                   d.hidden_size == hidden_size && d.intermediate_size == intermediate_size;
          }};
}

Condition experts_divide(bool with_redundant) {
  return {with_redundant ? "experts, redundant ones too, divisible by the ranks"
                         : "experts divisible by the ranks",
          [with_redundant](const Question& q) {
            const Deployment& d = q.deployment;
            const int64_t more = with_redundant ? d.parallel.num_redundant_experts : 0;
            return !d.num_experts || checked_add(*d.num_experts, more) % q.parallel.ep_size == 0;
          }};
}

Condition scoring_is(std::string_view name) {
  return {fmt::format("scoring_func {}", name),
          [name](const Question& q) { return q.deployment.scoring_func == name; }};
}

Condition normalizes_weights() {
  return {"norm_topk_prob", [](const Question& q) { return q.deployment.norm_topk_prob; }};
}

Condition grouped_topk() {
  return {"use_grouped_topk", [](const Question& q) { return q.deployment.grouped_topk; }};
}

Condition one_expert_group() {
  return {"one expert group", [](const Question& q) {
            return q.deployment.expert_groups == 1 && q.deployment.taken_groups == 1;
          }};
}

Condition latent_experts() {
  return {"routed_expert_hidden_size in config.json",
          [](const Question& q) { return q.deployment.latent_experts; }};
}

Condition model_shape(int64_t num_experts, int64_t hidden_size, int64_t intermediate_size) {
  return {fmt::format("{} experts, hidden size {}, intermediate size {}", num_experts, hidden_size,
                      intermediate_size),
          [=](const Question& q) {
            const Deployment& d = q.deployment;
            return d.num_experts == num_experts && d.hidden_size == hidden_size &&
                   d.intermediate_size == intermediate_size;
          }};
}

Condition hash_routing() {
  return {"hash routing", [](const Question& q) { return q.deployment.hash_routing; }};
}

Condition situ_linear_beta() {
  return {"activation_situ_linear_beta in config.json",
          [](const Question& q) { return q.deployment.situ_linear_beta; }};
}

Condition weight_override_is(std::string_view name) {
  return {fmt::format("quantization_config.moe.weight {}", name),
          [name](const Question& q) { return q.deployment.weight_override == name; }};
}

}  // namespace mxfp4
