#include "formats/decision/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/blob/layout_facts.hpp"
#include "formats/checksum/checksum.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {

std::vector<Recipe> recipes_of(const Conversion& conversion, const ModelLayers& model) {
  const LayoutParameters parameters = layout_parameters(conversion.target);
  std::vector<Recipe> recipes;
  recipes.reserve(model.layers.size() * conversion.ranks.size());
  for (const ExpertLayer& layer : model.layers) {
    for (const RankSlice& rank : conversion.ranks) {
      recipes.push_back(recipe_of(model, layer, rank, conversion.layout, parameters));
    }
  }
  return recipes;
}

Recipe recipe_of(const Manifest& manifest, const ManifestLayer& layer) {
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

std::string recipe_digest(const Recipe& recipe) {
  const std::string text = recipe_text(recipe);
  return checksum_of(text);
}

std::optional<std::string> recipes_difference(const std::vector<Recipe>& here,
                                              const std::vector<Recipe>& there) {
  if (here.size() != there.size()) {
    return fmt::format("layers of ranks: {} here, {} there", here.size(), there.size());
  }
  for (size_t i = 0; i < here.size(); ++i) {
    if (auto difference = recipe_difference(here[i], there[i])) return difference;
  }
  return std::nullopt;
}

}  // namespace mxfp4
