// The conditions. Each is a lambda over a Question and a text made from the same arguments.
#include "lib/oracle/predicates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "lib/core/error.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {
namespace {

using Names = std::vector<std::string_view>;

// The size that the executed tables took where none was given.
constexpr int64_t kAssumedIntermediate = 23040;

bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

const std::string* find_env(const Question& q, std::string_view variable) {
  const auto found = q.deployment.env.find(std::string(variable));
  return found == q.deployment.env.end() ? nullptr : &found->second;
}

std::string join(const std::vector<Condition>& conditions, std::string_view word) {
  std::string text;
  for (const Condition& condition : conditions) {
    text += fmt::format("{}{}", text.empty() ? "" : word, condition.text);
  }
  return text;
}

std::vector<std::optional<std::string_view>> any_or_unset(const Names& names) {
  std::vector<std::optional<std::string_view>> values(names.begin(), names.end());
  values.emplace_back();
  return values;
}

Condition about(Condition condition, Fact fact) {
  condition.facts.push_back(std::move(fact));
  return condition;
}

// Features that are on or off.
Condition about_switch(FactKind kind, std::string_view on, Condition condition) {
  return about(std::move(condition), {kind, "", {on, std::nullopt}});
}

Condition about_machine(Condition condition) {
  return about(std::move(condition), {FactKind::kMachine});
}

std::vector<Fact> facts_of(const std::vector<Condition>& conditions) {
  std::vector<Fact> facts;
  for (const Condition& condition : conditions) {
    facts.insert(facts.end(), condition.facts.begin(), condition.facts.end());
  }
  return facts;
}

Condition one_of(std::string_view what, Names names, std::string_view (*value)(const Question&),
                 FactKind kind) {
  return about({fmt::format("{} {}", what, fmt::join(names, "|")),
                [names, value](const Question& q) { return contains(names, value(q)); }},
               {kind, "", any_or_unset(names)});
}

}  // namespace

Condition always() {
  Condition condition{"always", [](const Question&) { return true; }};
  condition.always_holds = true;
  return condition;
}

Condition never() {
  return {"never", [](const Question&) { return false; }};
}

Condition all_of(std::vector<Condition> conditions) {
  const auto parts = std::make_shared<const std::vector<Condition>>(std::move(conditions));
  Condition all{join(*parts, " and "), [parts](const Question& q) {
                  return std::ranges::all_of(*parts,
                                             [&](const Condition& c) { return c.holds(q); });
                }};
  all.facts = facts_of(*parts);
  all.parts = parts;
  return all;
}

Condition any_of(std::vector<Condition> conditions) {
  Condition any{fmt::format("({})", join(conditions, " or ")), {}, facts_of(conditions)};
  any.always_holds = std::ranges::any_of(conditions, &Condition::always_holds);
  any.holds = [conditions = std::move(conditions)](const Question& q) {
    return std::ranges::any_of(conditions, [&](const Condition& c) { return c.holds(q); });
  };
  return any;
}

Condition none_of(std::vector<Condition> conditions) {
  Condition none{fmt::format("not ({})", join(conditions, " or ")), {}, facts_of(conditions)};
  none.holds = [conditions = std::move(conditions)](const Question& q) {
    return std::ranges::none_of(conditions, [&](const Condition& c) { return c.holds(q); });
  };
  return none;
}

Condition platform_is(Platform platform) {
  return about_machine(
      {fmt::format("platform {}", platform_name(platform)),
       [platform](const Question& q) { return q.deployment.platform == platform; }});
}

Condition capability_is(int major, int minor) {
  const Capability wanted{major, minor};
  return about_machine({fmt::format("capability {}.{}", major, minor), [wanted](const Question& q) {
                          return q.capability && *q.capability == wanted;
                        }});
}

Condition capability_at_least(int major, int minor) {
  const Capability least{major, minor};
  return about_machine(
      {fmt::format("capability >= {}.{}", major, minor),
       [least](const Question& q) { return q.capability && *q.capability >= least; }});
}

Condition capability_below(int major, int minor) {
  const Capability limit{major, minor};
  return about_machine(
      {fmt::format("capability < {}.{}", major, minor),
       [limit](const Question& q) { return q.capability && *q.capability < limit; }});
}

Condition capability_family(int major) {
  return about_machine({fmt::format("capability {}.x", major), [major](const Question& q) {
                          return q.capability && q.capability->major == major;
                        }});
}

Condition arch_contains(std::string_view part) {
  return about_machine({fmt::format("arch *{}*", part), [part](const Question& q) {
                          return q.deployment.arch.find(part) != std::string::npos;
                        }});
}

Condition arch_in(Names names) {
  return one_of(
      "arch", std::move(names),
      [](const Question& q) -> std::string_view { return q.deployment.arch; }, FactKind::kMachine);
}

Condition package(std::string_view name) {
  return about(
      {fmt::format("package {}", name),
       [name = std::string(name)](const Question& q) { return q.deployment.libs.contains(name); }},
      {FactKind::kPackage, name, {"present", std::nullopt}});
}

Condition env_switch(std::string_view variable, bool when_unset) {
  return about({fmt::format("{} (unset: {})", variable, when_unset ? "on" : "off"),
                [variable, when_unset](const Question& q) {
                  const std::string* value = find_env(q, variable);
                  if (value == nullptr) return when_unset;
                  const std::string text = lower(*value);
                  return text == "true" || text == "1";
                }},
               {FactKind::kVariable, variable, {std::nullopt, "1", "0"}});
}

Condition env_number(std::string_view variable, bool when_unset) {
  return about({fmt::format("{} not 0 (unset: {})", variable, when_unset ? 1 : 0),
                [variable, when_unset](const Question& q) {
                  const std::string* value = find_env(q, variable);
                  return value == nullptr ? when_unset : python_int_is_nonzero(*value);
                }},
               {FactKind::kVariable, variable, {std::nullopt, "1", "0"}});
}

Condition env_is_one_of(std::string_view variable, Names values) {
  return about({fmt::format("{}={}", variable, fmt::join(values, "|")),
                [variable, values](const Question& q) {
                  const std::string* value = find_env(q, variable);
                  return value != nullptr && contains(values, lower(*value));
                }},
               {FactKind::kVariable, variable, any_or_unset(values)});
}

Condition activation_in(Names names) {
  return one_of(
      "activation", std::move(names), [](const Question& q) { return q.activation; },
      FactKind::kActivation);
}

Condition known_gated() {
  return about({"is_act_and_mul", [](const Question& q) { return q.deployment.is_act_and_mul; }},
               {FactKind::kActivation, "", {"silu"}});
}

Condition gated_by_name() {
  return about({"activation not *_no_mul",
                [](const Question& q) { return !q.activation.ends_with("_no_mul"); }},
               {FactKind::kActivation, "", {"silu"}});
}

Condition gated() {
  return about({"gated", [](const Question& q) { return q.gated; }}, {FactKind::kGated});
}

Condition no_key() {
  return about({"no key", [](const Question& q) { return !q.key; }},
               {FactKind::kActivationKey, "", {std::nullopt}});
}

Condition key_in(Names names) {
  return about({fmt::format("key {}", fmt::join(names, "|")),
                [names](const Question& q) { return q.key && contains(names, *q.key); }},
               {FactKind::kActivationKey, "", any_or_unset(names)});
}

Condition requested_key_in(Names names) {
  return about({fmt::format("requested key {}", fmt::join(names, "|")),
                [names](const Question& q) {
                  const Deployment& d = q.deployment;
                  const auto& key =
                      d.activation_override ? d.activation_override : d.model_activation;
                  return key && contains(names, *key);
                }},
               {FactKind::kActivationKey, "", any_or_unset(names)});
}

Condition moe_backend_is(std::string_view name) {
  return about({fmt::format("moe_backend {}", name),
                [name](const Question& q) { return q.deployment.moe_backend == name; }},
               {FactKind::kMoeBackend, "", {name, std::nullopt}});
}

Condition routing_in(Names names) {
  return one_of(
      "routing", std::move(names),
      [](const Question& q) -> std::string_view { return q.deployment.routing_method; },
      FactKind::kRouting);
}

Condition expert_parallel() {
  return about_switch(FactKind::kExpertParallel, "on",
                      {"expert parallel", [](const Question& q) { return q.parallel.use_ep; }});
}

Condition expert_parallel_enabled() {
  return about_switch(FactKind::kExpertParallel, "on",
                      {"expert parallel enabled", [](const Question& q) {
                         return q.deployment.parallel.enable_expert_parallel;
                       }});
}

Condition tp_is(int64_t size) {
  return about({fmt::format("tp {}", size),
                [size](const Question& q) { return q.deployment.parallel.tp_size == size; }},
               {FactKind::kTpSize, "", {std::nullopt, "2", "4", "8"}});
}

Condition dp_above_one() {
  return about_switch(FactKind::kDpSize, "2",
                      {"dp > 1", [](const Question& q) { return q.parallel.dp_size > 1; }});
}

Condition pcp_above_one() {
  return about_switch(FactKind::kPcpSize, "2",
                      {"pcp > 1", [](const Question& q) { return q.parallel.pcp_size > 1; }});
}

Condition sp_above_one() {
  return about_switch(FactKind::kSequenceParallel, "on",
                      {"sp > 1", [](const Question& q) { return q.parallel.sp_size > 1; }});
}

Condition all2all_in_use() {
  return about({"all-to-all", [](const Question& q) { return q.uses_all2all; }},
               {FactKind::kUsesAll2All});
}

Condition all2all_backend_in(Names names) {
  return one_of(
      "all-to-all backend", std::move(names),
      [](const Question& q) -> std::string_view { return q.parallel.all2all_backend; },
      FactKind::kAll2AllBackend);
}

Condition eplb() {
  return about_switch(FactKind::kEplb, "on",
                      {"EPLB", [](const Question& q) { return q.parallel.enable_eplb; }});
}

Condition batched_format() {
  return about({"batched format", [](const Question& q) { return q.batched; }},
               {FactKind::kBatched});
}

Condition lora() {
  return about_switch(FactKind::kLora, "on",
                      {"LoRA", [](const Question& q) { return q.deployment.lora; }});
}

Condition intermediate_multiple_of(int64_t multiple) {
  return about({fmt::format("intermediate size of a rank a multiple of {}", multiple),
                [multiple](const Question& q) {
                  const int64_t size =
                      q.deployment.intermediate_size.value_or(kAssumedIntermediate);
                  return size / q.parallel.tp_size % multiple == 0;
                }},
               {FactKind::kTpSize, "", {std::nullopt, "2", "4", "8"}});
}

Condition model_type_in(Names names) {
  return {fmt::format("model type {}", fmt::join(names, "|")),
          [names](const Question& q) { return contains(names, q.deployment.model_type); }};
}

Condition gemm_type_is(std::string_view type) {
  return about({fmt::format("preferred gemm type {}", type),
                [type](const Question& q) { return preferred_gemm_type(q) == type; }},
               {FactKind::kGemmType, "", {type, std::nullopt}});
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
