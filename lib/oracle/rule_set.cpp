#include "lib/oracle/rule_set.hpp"

#include "lib/core/checked.hpp"

namespace mxfp4 {

LayerDims round_up_sizes(const RuleSet& rules, const Target& target, LayerDims dims) {
  for (const RoundingRow& row : rules.rounding) {
    if (!row.holds(target)) continue;
    dims.hidden_size = round_up(dims.hidden_size, row.hidden_multiple);
    dims.intermediate_size = round_up(dims.intermediate_size, row.intermediate_multiple);
    break;
  }
  return dims;
}

const LayoutRow* find_layout_row(const RuleSet& rules, const Target& target) {
  for (const LayoutRow& row : rules.layouts) {
    if (row.backend != target.backend) continue;
    if (row.family && *row.family != target.family) continue;
    if (row.when.holds != nullptr && !row.when.holds(target)) continue;
    return &row;
  }
  return nullptr;
}

}  // namespace mxfp4
