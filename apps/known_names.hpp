// Looks up names that flags take. The error for an unknown name gives the nearest known one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Whether a revision's name may be meant where --engine is `engine`; an empty engine: any.
[[nodiscard]] bool engine_fits(const std::string& engine, const std::string& revision);
// The revision that --engine and --revision mean together: "0.5.23" of "sglang" is "sglang-0.5.23",
// an empty name the engine's newest. Throws Error::usage if they contradict each other.
[[nodiscard]] std::string revision_of_engine(const std::string& engine, const std::string& name);
// The rule set that --revision names; the default for an empty name. Throws Error::usage.
[[nodiscard]] const RuleSet& rules_named(const std::string& name);
// What to say of a release that is newer than the one whose rules stand for it; else empty.
[[nodiscard]] std::string newer_words(const std::string& name);

// Throws Error::usage, with the nearest name, for a value of --moe-backend that no release knows.
void require_moe_backend(const RuleSet& rules, const std::string& text);
// The refusal of a name that the engine knows, but for which these rules have no MXFP4 backend. Its
// hint names a release that has one. Empty for other names.
[[nodiscard]] std::optional<Error> no_moe_backend(const RuleSet& rules, const std::string& name);

// The values of --style, as `list styles` shows them.
[[nodiscard]] std::vector<std::string> known_styles();

}  // namespace mxfp4
