#include "lib/plan/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/dtype.hpp"

namespace mxfp4 {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// "0-31", "0,8,16": consecutive numbers as runs.
std::string runs(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

std::string fill_text(const std::optional<std::byte>& fill) {
  return fill ? fmt::format("{}", std::to_integer<int>(*fill)) : "none";
}

std::string bias_text(const Recipe& recipe) {
  if (!recipe.bias) return "none";
  return fmt::format("{}{}", dtype_name(*recipe.bias), recipe.w2_bias ? "" : ", w2's zero");
}

// Causes come before their consequences, so that the first difference is the telling one.
Fields fields_of(const Recipe& recipe) {
  const WeightFormat& weights = recipe.weights;
  Fields fields = {{"weights", fmt::format("{}: {} codes a byte, {} scales of {}", weights.name,
                                           weights.codes_per_byte, weights.scale, weights.block)},
                   {"layout", recipe.layout}};
  fields.insert(fields.end(), recipe.parameters.begin(), recipe.parameters.end());
  fields.insert(fields.end(),
                {{"experts", runs(recipe.experts)},
                 {"hidden size", fmt::format("{}", recipe.hidden_size)},
                 {"padded hidden size", fmt::format("{}", recipe.padded_hidden_size)},
                 {"intermediate rows",
                  fmt::format("[{}, {})", recipe.intermediate_begin, recipe.intermediate_end)},
                 {"padded intermediate size", fmt::format("{}", recipe.padded_intermediate_size)},
                 {"w13 rows", std::string(w13_order_name(recipe.order))},
                 {"scale padding of the hidden size", fill_text(recipe.hidden_fill)},
                 {"scale padding of the intermediate size", fill_text(recipe.intermediate_fill)},
                 {"biases", bias_text(recipe)},
                 {"input scales", recipe.input_scales ? "yes" : "no"}});
  return fields;
}

}  // namespace

Recipe recipe_of(const ModelLayers& model, const ExpertLayer& layer, const RankSlice& rank,
                 const Layout* layout, const LayoutParameters& parameters) {
  Recipe recipe;
  recipe.layout = layout == nullptr ? kLoadedLayoutId : id_of(*layout);
  if (layout != nullptr) {
    for (auto& [name, value] : parameters_of(*layout, parameters)) {
      recipe.parameters.emplace(name, std::move(value));
    }
  }
  recipe.experts = rank.experts_of(layer.dims.num_experts);
  recipe.hidden_size = layer.dims.hidden_size;
  recipe.intermediate_begin = rank.begin;
  recipe.intermediate_end = rank.end;
  recipe.padded_hidden_size = rank.padded.hidden_size;
  recipe.padded_intermediate_size = rank.padded.intermediate_size;
  recipe.order = model.order;
  const ScaleFill fill = scale_fill_of(model, rank);
  if (recipe.padded_hidden_size != recipe.hidden_size) recipe.hidden_fill = fill.hidden;
  if (recipe.padded_intermediate_size != rank.end - rank.begin) {
    recipe.intermediate_fill = fill.intermediate;
  }
  if (layer.has(Slot::kW13Bias)) {
    recipe.bias = model.bias_dtype;
    recipe.w2_bias = rank.w2_bias;
  }
  recipe.input_scales = layer.has(Slot::kW13InputScale);
  return recipe;
}

std::string recipe_text(const Recipe& recipe) {
  std::string text;
  for (const auto& [name, value] : fields_of(recipe)) {
    text += fmt::format("{}: {}\n", name, value);
  }
  return text;
}

std::optional<RecipeDifference> recipe_difference(const Recipe& here, const Recipe& there) {
  const Fields ours = fields_of(here);
  const Fields theirs = fields_of(there);
  for (const auto& [name, value] : ours) {
    const auto other = std::ranges::find(theirs, name, &Fields::value_type::first);
    // A parameter of another layout: the layout, which comes first, says it.
    if (other != theirs.end() && other->second != value) {
      return RecipeDifference{name, value, other->second};
    }
  }
  return std::nullopt;
}

}  // namespace mxfp4
