// The tables of `list` about what a user can say of the serving process: its variables, its kernel
// packages and the layouts' knobs.
#pragma once

#include <string>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// With `only`, what these rules look at; null: what any release's rules look at.
[[nodiscard]] std::string variables_text(const Console& console, const RuleSet* only);
[[nodiscard]] Json variables_json(const RuleSet* only);
[[nodiscard]] std::string libraries_text(const Console& console, const RuleSet* only);
[[nodiscard]] Json libraries_json(const RuleSet* only);

[[nodiscard]] std::string knobs_text(const Console& console);
[[nodiscard]] Json knobs_json();

}  // namespace mxfp4
