// The targets that the table and property tests walk: every backend, family, machine and knob that
// a layout may tell apart.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/layouts/output.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::test {

// Machines: platform and arch. With `knobs` also every knob combination on each machine.
[[nodiscard]] std::vector<Target> targets_of(Backend backend, Family family, bool knobs);

// find_layout_row; null also for a target that does not say enough to tell the layout.
[[nodiscard]] const LayoutRow* row_of(const RuleSet& rules, const Target& target);

// A layer of `sizes` rounded up as a row wants them, with biases and input scales, and the first
// target that the row's layout takes. Empty where it takes none.
[[nodiscard]] std::optional<LayoutInput> first_input_of(const RuleSet& rules, const LayoutRow& row,
                                                        const LayerDims& sizes);

// Each layout with its first input of these sizes, rounded up as the layout wants them. Layouts
// that refuse them are left out.
[[nodiscard]] std::map<const Layout*, LayoutInput> inputs_of(const LayerDims& sizes);

}  // namespace mxfp4::test
