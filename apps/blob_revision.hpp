// Whether a blob that one engine revision's rules made would still serve another revision: the
// same layout, the same padded sizes, the same slices. Which backend that revision would choose is
// another question, which `explain --against` answers.
#pragma once

#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Why the blob of `rank` would not serve, one line each; none: it would. `ranks` are the manifests
// of all ranks at hand, which tell the size of the whole model.
[[nodiscard]] std::vector<std::string> reasons_against(const RuleSet& rules, const Manifest& rank,
                                                       const std::vector<Manifest>& ranks);

}  // namespace mxfp4
