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

// The rule set that made a blob, by its manifest; the default one where this program does not know
// it: bytes follow from the layout id, not from the rules.
[[nodiscard]] const RuleSet& rules_of_blob(const Manifest& manifest);

}  // namespace mxfp4
