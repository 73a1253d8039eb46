// The classes that the oracle tried, with each of their conditions: met or not. explain shows them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct ConditionAnswer {
  std::string_view topic;  // "device", "routing", ...
  std::string_view text;   // the rule set's words, which outlive every answer
  bool met = false;
};

// A class that the oracle tried. Conjunctions are taken apart; conditions that always hold are left
// out.
struct Candidate {
  TraceStep step;
  std::optional<Backend> backend{};  // the one that it was tried for; empty: the class has no rules
  std::vector<ConditionAnswer> conditions{};
};

// The classes of a decision's trace, in its order, asked again about the decision's deployment.
[[nodiscard]] std::vector<Candidate> examine_trace(const RuleSet& rules,
                                                   const Deployment& deployment,
                                                   const Decision& decision);

}  // namespace mxfp4
