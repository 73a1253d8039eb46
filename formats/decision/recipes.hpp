// The recipes of a conversion, and of a blob: "would the bytes be the same?" is asked of them, and of
// nothing else.
#pragma once

#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/decision/conversion.hpp"
#include "lib/plan/recipe.hpp"

namespace mxfp4 {

// One recipe for each layer and rank, by layer, then by rank. Requires a backend, and a layout or a
// conversion that stops at the loaded one.
[[nodiscard]] std::vector<Recipe> recipes_of(const Conversion& conversion,
                                             const ModelLayers& model);

// The members of a manifest that the decision knows, the same for every rank: revision, layout,
// target, parallel sizes, fill. Requires what recipes_of does.
[[nodiscard]] Manifest decided_manifest(const Conversion& conversion);

// The rule set by which a blob was made. If this program does not know the manifest's revision, the
// default one, which is good enough because bytes follow from the layout id, not from the rules.
[[nodiscard]] const RuleSet& rules_of_blob(const Manifest& manifest);

}  // namespace mxfp4
