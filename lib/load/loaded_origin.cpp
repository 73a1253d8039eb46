#include "lib/load/loaded_origin.hpp"

#include <fmt/format.h>

#include <string>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/load/block_names.hpp"
#include "lib/load/module_rules.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

// The activation key of the rule that the first layer's experts fall under.
std::string activation_of_origin(const ModelLayers& model, const StyleRow& row,
                                 const ModelConfig& config) {
  if (!config.quantization) return {};
  const std::string& prefix = model.layers.front().prefix;
  for (const ProjectionWord& projection : row.projections) {
    ExpertTensorName name;
    name.module = prefix;
    name.word = projection.word;
    const ModuleQuantization* rule =
        find_rule(*config.quantization, prefix, linear_name(row, name));
    if (rule != nullptr && rule->refusal.empty()) return rule->activation;
  }
  return config.quantization->activation;
}

}  // namespace

void follow_origin(ModelLayers& model, const ModelConfig* config, const LoadedOrigin& origin) {
  const StyleRow* row = find_style_row(origin.style, origin.loader);
  if (row == nullptr) {
    throw Error::input(fmt::format("attribute {}: style {} with loader {}", kCheckpointAttribute,
                                   style_name(origin.style), loader_name(origin.loader)));
  }
  model.origin = origin;
  model.loader = origin.loader;
  if (config != nullptr) model.activation = activation_of_origin(model, *row, *config);
  for (ExpertLayer& layer : model.layers) {
    layer.engine_prefix = engine_path(origin.style, layer.index);
    if (!origin.slice) continue;
    const LoadedSlice& slice = *origin.slice;
    const bool fits =
        slice.tp_rank < slice.tp_size && slice.intermediate_size <= (int64_t{1} << 22) &&
        checked_add(slice.begin, layer.dims.intermediate_size) <= slice.intermediate_size;
    if (fits) continue;
    throw Error::input(fmt::format("attribute {}: its slice does not hold {}", kCheckpointAttribute,
                                   layer.prefix));
  }
}

}  // namespace mxfp4
