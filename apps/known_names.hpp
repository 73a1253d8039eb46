// Names that flags take, looked up so that a wrong one is answered with the nearest.
#pragma once

#include <string>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The rule set that --revision names; empty: the default. Throws Error::usage.
[[nodiscard]] const RuleSet& rules_named(const std::string& name);
// The rules of the vLLM that is installed where the model is served. Throws Error::usage, naming
// the nearest release, for a version that is not known.
[[nodiscard]] const RuleSet& rules_of_engine(const std::string& version);

// "did you mean --moe-backend X?" for a name that these rules do not know; empty when they know it,
// or nothing is near.
[[nodiscard]] std::string moe_backend_hint(const RuleSet& rules, const std::string& name);

// The values of --style, as `list styles` shows them.
[[nodiscard]] std::vector<std::string> known_styles();

}  // namespace mxfp4
