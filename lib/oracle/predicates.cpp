// The conditions. Each is a lambda over a Question and a text made from the same arguments.
#include "lib/oracle/predicates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "lib/core/checked.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {
namespace {

using Names = std::vector<std::string_view>;

// The sizes that the executed tables took where none was given.
constexpr int64_t kAssumedHidden = 2880, kAssumedIntermediate = 23040;

bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string join(const std::vector<Condition>& conditions, std::string_view word) {
  std::string text;
  for (const Condition& condition : conditions) {
    text += fmt::format("{}{}", text.empty() ? "" : word, condition.text);
  }
  return text;
}

std::vector<AskedName> asked_by(const std::vector<Condition>& conditions) {
  std::vector<AskedName> asked;
  for (const Condition& condition : conditions) {
    asked.insert(asked.end(), condition.asked.begin(), condition.asked.end());
  }
  return asked;
}

Condition one_of(std::string_view what, Names names, std::string_view (*value)(const Question&)) {
  return {fmt::format("{} {}", what, fmt::join(names, "|")),
          [names, value](const Question& q) { return contains(names, value(q)); }};
}

}  // namespace

Condition always() {
  return {"always", [](const Question&) { return true; }};
}

Condition never() {
  return {"never", [](const Question&) { return false; }};
}

Condition all_of(std::vector<Condition> conditions) {
  Condition all{join(conditions, " and "), {}, asked_by(conditions)};
  all.holds = [conditions = std::move(conditions)](const Question& q) {
    return std::ranges::all_of(conditions, [&](const Condition& c) { return c.holds(q); });
  };
  return all;
}

Condition any_of(std::vector<Condition> conditions) {
  Condition any{fmt::format("({})", join(conditions, " or ")), {}, asked_by(conditions)};
  any.holds = [conditions = std::move(conditions)](const Question& q) {
    return std::ranges::any_of(conditions, [&](const Condition& c) { return c.holds(q); });
  };
  return any;
}

Condition none_of(std::vector<Condition> conditions) {
  Condition none = any_of(std::move(conditions));
  none.text = fmt::format("not {}", none.text);
  none.holds = std::not_fn(std::move(none.holds));
  return none;
}

Condition platform_is(Platform platform) {
  return {fmt::format("platform {}", platform_name(platform)),
          [platform](const Question& q) { return q.deployment.platform == platform; }};
}

Condition capability_is(int major, int minor) {
  return {fmt::format("capability {}.{}", major, minor), [=](const Question& q) {
            return q.capability == Capability{major, minor};
          }};
}

Condition capability_at_least(int major, int minor) {
  return {fmt::format("capability >= {}.{}", major, minor), [=](const Question& q) {
            return q.capability >= Capability{major, minor};
          }};
}

Condition capability_below(int major, int minor) {
  return {fmt::format("capability < {}.{}", major, minor), [=](const Question& q) {
            return q.capability && *q.capability < Capability{major, minor};
          }};
}

Condition capability_family(int major) {
  return {fmt::format("capability {}.x", major),
          [=](const Question& q) { return q.capability && q.capability->major == major; }};
}

Condition arch_contains(std::string_view part) {
  return {fmt::format("arch *{}*", part),
          [part](const Question& q) { return q.deployment.arch.find(part) != std::string::npos; }};
}

Condition arch_in(Names names) {
  return one_of("arch", std::move(names),
                [](const Question& q) -> std::string_view { return q.deployment.arch; });
}

Condition package(std::string_view name) {
  return {
      fmt::format("package {}", name),
      [name = std::string(name)](const Question& q) { return q.deployment.libs.contains(name); },
      {{FactKind::kPackage, name}}};
}

Condition variable(std::string_view name, std::string text, bool when_unset,
                   std::function<bool(std::string_view)> holds) {
  return {std::move(text),
          [name, when_unset, holds = std::move(holds)](const Question& q) {
            const auto found = q.deployment.env.find(std::string(name));
            return found == q.deployment.env.end() ? when_unset : holds(found->second);
          },
          {{FactKind::kVariable, name}}};
}

Condition env_switch(std::string_view name, bool when_unset) {
  return variable(name, fmt::format("{} (unset: {})", name, when_unset ? "on" : "off"), when_unset,
                  [](std::string_view value) {
                    const std::string text = lower(value);
                    return text == "true" || text == "1";
                  });
}

Condition env_number(std::string_view name, bool when_unset) {
  return variable(name, fmt::format("{} not 0 (unset: {})", name, when_unset ? 1 : 0), when_unset,
                  python_int_is_nonzero);
}

Condition env_is_one_of(std::string_view name, Names values) {
  return variable(name, fmt::format("{}={}", name, fmt::join(values, "|")), false,
                  [values](std::string_view value) { return contains(values, lower(value)); });
}

Condition activation_in(Names names) {
  return one_of("activation", std::move(names), [](const Question& q) { return q.activation; });
}

Condition known_gated() {
  return {"is_act_and_mul", [](const Question& q) { return q.deployment.is_act_and_mul; }};
}

Condition gated_by_name() {
  return {"activation not *_no_mul",
          [](const Question& q) { return !q.activation.ends_with("_no_mul"); }};
}

Condition gated() {
  return {"gated", [](const Question& q) { return q.gated; }};
}

Condition no_key() {
  return {"no key", [](const Question& q) { return !q.key; }};
}

Condition key_in(Names names) {
  return {fmt::format("key {}", fmt::join(names, "|")),
          [names](const Question& q) { return q.key && contains(names, *q.key); }};
}

Condition moe_backend_is(std::string_view name) {
  return {fmt::format("moe_backend {}", name),
          [name](const Question& q) { return q.deployment.moe_backend == name; }};
}

Condition routing_in(Names names) {
  return one_of("routing", std::move(names),
                [](const Question& q) -> std::string_view { return q.deployment.routing_method; });
}

Condition expert_parallel() {
  return {"expert parallel", [](const Question& q) { return q.parallel.use_ep; }};
}

Condition expert_parallel_enabled() {
  return {"expert parallel enabled",
          [](const Question& q) { return q.deployment.parallel.enable_expert_parallel; }};
}

Condition tp_is(int64_t size) {
  return {fmt::format("tp {}", size),
          [size](const Question& q) { return q.deployment.parallel.tp_size == size; }};
}

Condition dp_above_one() {
  return {"dp > 1", [](const Question& q) { return q.parallel.dp_size > 1; }};
}

Condition pcp_above_one() {
  return {"pcp > 1", [](const Question& q) { return q.parallel.pcp_size > 1; }};
}

Condition sp_above_one() {
  return {"sp > 1", [](const Question& q) { return q.parallel.sp_size > 1; }};
}

Condition all2all_in_use() {
  return {"all-to-all", [](const Question& q) { return q.uses_all2all; }};
}

Condition all2all_backend_in(Names names) {
  return one_of("all-to-all backend", std::move(names),
                [](const Question& q) -> std::string_view { return q.parallel.all2all_backend; });
}

Condition eplb() {
  return {"EPLB", [](const Question& q) { return q.parallel.enable_eplb; }};
}

Condition batched_format() {
  return {"batched format", [](const Question& q) { return q.batched; }};
}

Condition lora() {
  return {"LoRA", [](const Question& q) { return q.deployment.lora; }};
}

Condition model_type_in(Names names) {
  return {fmt::format("model type {}", fmt::join(names, "|")),
          [names](const Question& q) { return contains(names, q.deployment.model_type); }};
}

Condition gemm_type_is(std::string_view type) {
  return {fmt::format("preferred gemm type {}", type),
          [type](const Question& q) { return preferred_gemm_type(q) == type; }};
}

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

Condition intermediate_multiple_of(int64_t multiple) {
  return {fmt::format("intermediate size of a rank a multiple of {}", multiple),
          [multiple](const Question& q) {
            const int64_t size = q.deployment.intermediate_size.value_or(kAssumedIntermediate);
            return size / q.parallel.tp_size % multiple == 0;
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

Condition model_shape(int64_t num_experts, int64_t hidden_size, int64_t intermediate_size) {
  return {fmt::format("{} experts, hidden size {}, intermediate size {}", num_experts, hidden_size,
                      intermediate_size),
          [=](const Question& q) {
            const Deployment& d = q.deployment;
            return d.num_experts == num_experts && d.hidden_size == hidden_size &&
                   d.intermediate_size == intermediate_size;
          }};
}

Condition situ_linear_beta() {
  return {"activation_situ_linear_beta in config.json",
          [](const Question& q) { return q.deployment.situ_linear_beta; }};
}

ExpertClass generic_class(SupportRow row, std::vector<Check> own) {
  const Condition format = row.batched ? batched_format() : none_of({batched_format()});
  const Condition quiet = none_of({env_number("VLLM_BATCH_INVARIANT", false)});
  std::vector<Check> checks = std::move(own);
  checks.insert(
      checks.end(),
      {
          {"device", row.device, "kernel does not support current device {device}"},
          {"gate", row.ungated ? always() : gated(),
           "kernel does not support no act_and_mul MLP layer"},
          {"activation", row.activation,
           "kernel does not support MoEActivation.{activation} activation"},
          {"scheme", row.scheme, "kernel does not support quantization scheme {weight_key}x{key}"},
          {"parallel", row.parallel, "kernel does not support parallel config {parallel}"},
          {"routing", row.routing, "kernel does not support routing method {routing}"},
          {"format", format, "kernel does not support ('{format}',) activation format"},
          // The engine reads the variable for every class, so a malformed value is always an error.
          {"batch invariance", row.batch_invariant ? any_of({quiet, always()}) : quiet,
           "kernel does not support batch invariance"},
          {"LoRA", row.lora ? always() : none_of({lora()}), "kernel does not support LoRA"},
      });
  return {.name = row.name, .monolithic = row.monolithic, .checks = std::move(checks)};
}

}  // namespace mxfp4
