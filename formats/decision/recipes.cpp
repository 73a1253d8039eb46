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

Manifest decided_manifest(const Conversion& conversion) {
  const Layout* layout = conversion.layout;
  Manifest manifest;
  manifest.revision = conversion.rules->name;
  manifest.engine = conversion.rules->engine;
  manifest.vllm_commit = conversion.rules->commit;
  manifest.parameter_names =
      parameter_names(*conversion.rules, conversion.caller, conversion.target.backend);
  manifest.layout = layout == nullptr ? kLoadedLayoutId : id_of(*layout);
  if (layout != nullptr) manifest.kernel_library = kernel_library_of(*layout);
  manifest.decision = conversion.decision;
  manifest.target = conversion.target;
  manifest.parallel = conversion.deployment.parallel;
  manifest.scale_fill = conversion.fill.intermediate;
  return manifest;
}

const RuleSet& rules_of_blob(const Manifest& manifest) {
  const Release* release = find_release(manifest.revision);
  return release == nullptr ? default_revision() : rules_of(*release);
}

}  // namespace mxfp4
