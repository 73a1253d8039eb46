// The tables of `list` about what a user can say: the serving machine and process, its variables
// and kernel packages, the layouts' knobs, and how a checkpoint names its tensors.
#pragma once

#include <string>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "apps/name_filter.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// With `only`, what these rules look at; null: what any release's rules look at.
[[nodiscard]] std::string variables_text(const Console& console, NameFilter& names,
                                         const RuleSet* only);
[[nodiscard]] Json variables_json(NameFilter& names, const RuleSet* only);
[[nodiscard]] std::string libraries_text(const Console& console, NameFilter& names,
                                         const RuleSet* only);
[[nodiscard]] Json libraries_json(NameFilter& names, const RuleSet* only);

[[nodiscard]] std::string knobs_text(const Console& console, NameFilter& names);
[[nodiscard]] Json knobs_json(NameFilter& names);
[[nodiscard]] std::string machines_text(const Console& console, NameFilter& names);
[[nodiscard]] Json machines_json(NameFilter& names);
[[nodiscard]] std::string styles_text(const Console& console, NameFilter& names);
[[nodiscard]] Json styles_json(NameFilter& names);

}  // namespace mxfp4
