// The environment variables and kernel packages that a decision or a layout depends on: read off the
// rules themselves.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lib/core/fact_kind.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// By the name of a variable or package: what a rule that looks at it is about, mostly backends.
using FactUses = std::map<std::string, std::set<std::string>>;

// `kind`: kVariable, or kPackage, of which every one that the rules know is there.
[[nodiscard]] FactUses fact_uses(const RuleSet& rules, FactKind kind);

[[nodiscard]] std::set<std::string> variables_of(const RuleSet& rules);
// The variables that a rule of any revision looks at.
[[nodiscard]] std::set<std::string> variables_of_all_revisions();

}  // namespace mxfp4
