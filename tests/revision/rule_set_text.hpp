// A rule set as text, one line a row, so that a change of any rule shows in review.
#pragma once

#include <string>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Names, classes, selection, checkpoint rules, sizes.
[[nodiscard]] std::string rule_set_text(const RuleSet& rules);
// Layout and defect rows.
[[nodiscard]] std::string layout_rows_text(const RuleSet& rules);

// What `text` changes in `base`, a line each ("-" gone, "+" new) under the section that has it.
[[nodiscard]] std::string changed_lines(const std::string& base, const std::string& text);

}  // namespace mxfp4
