// The recipes of a conversion, and of a blob: "would the bytes be the same?" is asked of them, and of
// nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/decision/conversion.hpp"
#include "lib/plan/recipe.hpp"

namespace mxfp4 {

// One recipe for each layer and rank, by layer, then by rank. Requires a backend, and a layout or a
// conversion that stops at the loaded one.
[[nodiscard]] std::vector<Recipe> recipes_of(const Conversion& conversion,
                                             const ModelLayers& model);

// The recipe of a blob's layer.
[[nodiscard]] Recipe recipe_of(const Manifest& manifest, const ManifestLayer& layer);

// XXH3-128 (hex) of the recipe's canonical text.
[[nodiscard]] std::string recipe_digest(const Recipe& recipe);

// The first difference of two lists, in words, with its place; empty if all are equal.
[[nodiscard]] std::optional<std::string> recipes_difference(const std::vector<Recipe>& here,
                                                            const std::vector<Recipe>& there);

}  // namespace mxfp4
