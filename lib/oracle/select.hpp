// The evaluator of a rule set: which backend the engine would choose for a deployment, and every
// question asked on the way. Follows vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py
// (select_mxfp4_moe_backend, select_deepseek_v4_mxfp4_moe_backend) without knowing any backend.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// A refusal of the reference is a Decision without a backend. Throws Error::input for a deployment
// that names something unknown (make_question).
[[nodiscard]] Decision select_backend(const RuleSet& rules, const Deployment& deployment);

// The answer of the layer's constructor. Before it selects, it asserts that the ranks divide the
// intermediate size, if that is known: AssertionError, without words. For a checkpoint
// slice_ranks() checks the same, and says it in words.
[[nodiscard]] Decision construct_layer(const RuleSet& rules, const Deployment& deployment);

// Asks one class, as for any backend of the oracle, with the key of `question`. Throws
// Error::internal for a class that the rules do not know.
[[nodiscard]] TraceStep ask_class(const Question& question, std::string_view expert_class);

// The backends that are left for a key, in their order. With a key: those whose own key it is and
// those that survive any key; then, where the revision falls back, those without a key. Without a
// key: those without a key of their own, or all when that leaves nothing.
[[nodiscard]] std::vector<Backend> filter_by_key(const RuleSet& rules,
                                                 const std::vector<Backend>& backends,
                                                 std::optional<std::string_view> key);

}  // namespace mxfp4
