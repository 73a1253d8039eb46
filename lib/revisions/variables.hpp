// The environment variables that a decision or a layout depends on, read off the rules themselves.
#pragma once

#include <set>
#include <string>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Those that a rule of this revision looks at.
[[nodiscard]] std::set<std::string> variables_of(const RuleSet& rules);

// Those that a rule of any revision looks at.
[[nodiscard]] std::set<std::string> variables_of_all_revisions();

}  // namespace mxfp4
