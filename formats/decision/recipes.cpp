#include "formats/decision/recipes.hpp"

#include "formats/blob/layout_facts.hpp"
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

Recipe recipe_of(const Manifest& manifest, size_t index) {
  const ManifestLayer& layer = manifest.layers[index];
  // As the loader saw the layer: a manifest states every number of it.
  ModelLayers model;
  model.order = manifest.order;
  model.scale_fill = manifest.scale_fill;
  model.bias_dtype = layer.loaded.bias.value_or(manifest.bias_dtype);
  ExpertLayer source;
  source.dims = {layer.loaded.dims.num_experts, layer.hidden_size, manifest.rank.end};
  for (const Slot slot : kAllSlots) {
    if (layer.loaded.has(slot)) source.slots[static_cast<size_t>(slot)].experts.resize(1);
  }
  RankSlice rank = manifest.rank;
  rank.other_experts.clear();
  if (layer.experts) rank.experts = *layer.experts;
  rank.padded = layer.loaded.dims;
  rank.hidden_fill = manifest.hidden_scale_fill;
  return recipe_of(model, source, rank, layout_of(manifest), layout_parameters(manifest.target));
}

const RuleSet& rules_of_blob(const Manifest& manifest) {
  const Release* release = find_release(manifest.revision);
  return release == nullptr ? default_revision() : rules_of(*release);
}

}  // namespace mxfp4
