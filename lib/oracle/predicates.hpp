// The vocabulary of the rule sets: one tiny function per condition, each carrying its own words,
// and the checks that every expert class shares (vLLM a2c8fc6657, fused_moe/modular_kernel.py,
// FusedMoEExperts.is_supported_config).
//
// Usage: all_of({platform_is(Platform::kCuda), capability_family(10), package("flashinfer")})
#pragma once

#include <string_view>
#include <vector>

#include "lib/oracle/condition.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {

[[nodiscard]] Condition always();
[[nodiscard]] Condition never();
// Tested in order, stopping at the first answer, as Python's `and` and `or` do.
[[nodiscard]] Condition all_of(std::vector<Condition> conditions);
[[nodiscard]] Condition any_of(std::vector<Condition> conditions);
[[nodiscard]] Condition none_of(std::vector<Condition> conditions);

[[nodiscard]] Condition platform_is(Platform platform);
// Capability tests are false where there is no capability.
[[nodiscard]] Condition capability_is(int major, int minor);
[[nodiscard]] Condition capability_at_least(int major, int minor);
[[nodiscard]] Condition capability_below(int major, int minor);
[[nodiscard]] Condition capability_family(int major);  // major.0 to major.9
[[nodiscard]] Condition arch_contains(std::string_view part);
[[nodiscard]] Condition arch_in(std::vector<std::string_view> names);  // "": not known
[[nodiscard]] Condition package(std::string_view name);

// An environment variable of the serving process. A switch is on when its lower-cased value is
// "true" or "1"; a number is read as Python's int() and is on when it is not 0. A malformed number
// throws Error::unsupported with reference type ValueError.
[[nodiscard]] Condition env_switch(std::string_view name, bool when_unset);
[[nodiscard]] Condition env_number(std::string_view name, bool when_unset);
// The lower-cased value is one of these; false when unset.
[[nodiscard]] Condition env_is_one_of(std::string_view name, std::vector<std::string_view> values);
// Any other test of a variable, and its words.
[[nodiscard]] Condition variable(std::string_view name, std::string text, bool when_unset,
                                 std::function<bool(std::string_view)> holds);

[[nodiscard]] Condition activation_in(std::vector<std::string_view> names);
[[nodiscard]] Condition known_gated();    // by the deployment
[[nodiscard]] Condition gated_by_name();  // the activation is not a *_no_mul one
[[nodiscard]] Condition gated();          // the rule set's answer
[[nodiscard]] Condition no_key();
[[nodiscard]] Condition key_in(std::vector<std::string_view> names);
[[nodiscard]] Condition moe_backend_is(std::string_view name);
[[nodiscard]] Condition routing_in(std::vector<std::string_view> names);
[[nodiscard]] Condition expert_parallel();
// The flag itself, also with one rank.
[[nodiscard]] Condition expert_parallel_enabled();
[[nodiscard]] Condition tp_is(int64_t size);
// The experts of the model, with EPLB's redundant ones where the kernel holds them, divide evenly
// among the expert-parallel ranks. True when their number is not given.
[[nodiscard]] Condition experts_divide(bool with_redundant);
[[nodiscard]] Condition dp_above_one();
[[nodiscard]] Condition pcp_above_one();
[[nodiscard]] Condition sp_above_one();
[[nodiscard]] Condition all2all_in_use();
[[nodiscard]] Condition all2all_backend_in(std::vector<std::string_view> names);
[[nodiscard]] Condition eplb();
[[nodiscard]] Condition batched_format();
[[nodiscard]] Condition lora();
// The number of experts, rounded up to `multiple`, is below `limit`. True where it is not
// known.
[[nodiscard]] Condition padded_experts_below(int64_t multiple, int64_t limit);

// The hidden size is a multiple of `multiple`; an unknown size counts as 2880.
[[nodiscard]] Condition hidden_multiple_of(int64_t multiple);
// A rank's share of the intermediate size is a multiple of `multiple`; an unknown size
// counts as 23040 for the whole model.
[[nodiscard]] Condition intermediate_multiple_of(int64_t multiple);
// The model's sizes are exactly these, split over ep_size expert-parallel ranks.
[[nodiscard]] Condition expert_parallel_shape(int64_t ep_size, int64_t num_experts,
                                              int64_t hidden_size, int64_t intermediate_size);
// The router's facts, as the model's config says them.
// The model's sizes are exactly these.
[[nodiscard]] Condition model_shape(int64_t num_experts, int64_t hidden_size,
                                    int64_t intermediate_size);
[[nodiscard]] Condition situ_linear_beta();
[[nodiscard]] Condition model_type_in(std::vector<std::string_view> names);
// The preferred type of grouped kernel (preferred_gemm_type) is this one.
[[nodiscard]] Condition gemm_type_is(std::string_view type);

// A class's own part in the shared checks.
struct SupportRow {
  std::string_view name;
  bool monolithic = false;
  Condition device;
  bool ungated = false;
  Condition activation;
  Condition scheme;
  Condition parallel;
  Condition routing;
  bool batched = false;  // the format that it needs
  bool lora = false;
  bool batch_invariant = false;
};

// The shared checks, in the reference's order: device, gate, activation, scheme, parallel, routing,
// format, batch invariance, LoRA. (Router dtype and hidden size never fail for these classes.)
// `own`: the class's own checks, which come before them.
[[nodiscard]] ExpertClass generic_class(SupportRow row, std::vector<Check> own = {});

}  // namespace mxfp4
