// The targets that the table and property tests walk: every backend, family, machine and knob that
// a layout may tell apart.
#pragma once

#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::test {

// Machines: platform and arch. With `knobs` also every knob combination on each machine.
[[nodiscard]] std::vector<Target> targets_of(Backend backend, Family family, bool knobs);

// find_layout_row; null also for a target that does not say enough to tell the layout.
[[nodiscard]] const LayoutRow* row_of(const RuleSet& rules, const Target& target);

}  // namespace mxfp4::test
