#include "formats/decision/recipes.hpp"

#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

std::vector<Recipe> recipes_of(const Conversion& conversion, const ModelLayers& model) {
  const LayoutParameters parameters = layout_parameters(conversion.target);
  std::vector<Recipe> recipes;
  recipes.reserve(model.layers.size() * conversion.ranks.size());
  for (const ExpertLayer& layer : model.layers) {
    for (const RankSlice& rank : conversion.ranks) {
      Recipe& recipe =
          recipes.emplace_back(recipe_of(model, layer, rank, conversion.layout, parameters));
      // The padding of the conversion's own method class, if other rules opened the model.
      if (conversion.caller == nullptr || !conversion.caller->scale_fill) continue;
      const std::byte fill = *conversion.caller->scale_fill;
      if (recipe.hidden_fill) recipe.hidden_fill = rank.hidden_fill.value_or(fill);
      if (recipe.intermediate_fill)
        recipe.intermediate_fill = rank.intermediate_fill.value_or(fill);
    }
  }
  return recipes;
}

const RuleSet& rules_of_blob(const Manifest& manifest) {
  const Release* release = find_release(manifest.revision);
  return release == nullptr ? default_revision() : rules_of(*release);
}

}  // namespace mxfp4
