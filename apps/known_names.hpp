// Names that flags take, looked up so that a wrong one is answered with the nearest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The rule set that --revision names; empty: the default. Throws Error::usage.
[[nodiscard]] const RuleSet& rules_named(const std::string& name);
// The rules of the vLLM that is installed where the model is served. Throws Error::usage, naming
// the nearest release, for a version that is not known.
[[nodiscard]] const RuleSet& rules_of_engine(const std::string& version);

// Throws Error::usage, naming the nearest, for a value of --moe-backend that no release knows.
void require_moe_backend(const RuleSet& rules, const std::string& text);
// The refusal of a name that the engine knows, but these rules have no MXFP4 backend for; its hint
// names a release that has one. Empty for other names.
[[nodiscard]] std::optional<Error> no_moe_backend(const RuleSet& rules, const std::string& name);

// The values of --style, as `list styles` shows them.
[[nodiscard]] std::vector<std::string> known_styles();

}  // namespace mxfp4
