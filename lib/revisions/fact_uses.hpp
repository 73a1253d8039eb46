// The environment variables and kernel packages that a decision or a layout depends on, and what
// each decides: read off the rules themselves.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// What a name decides: the kind ("support", "layout", ...) and the backends or methods that it is
// about, which may be none.
using Decides = std::map<std::string, std::set<std::string>>;
// By the name of a variable or package.
using FactUses = std::map<std::string, Decides>;

// The variables that a rule of this revision looks at.
[[nodiscard]] FactUses variable_uses(const RuleSet& rules);
// The same of kernel packages: every one that the rules know.
[[nodiscard]] FactUses package_uses(const RuleSet& rules);

[[nodiscard]] std::set<std::string> variables_of(const RuleSet& rules);
// The variables that a rule of any revision looks at.
[[nodiscard]] std::set<std::string> variables_of_all_revisions();

}  // namespace mxfp4
