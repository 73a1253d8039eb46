#include "lib/load/find_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/describe_published.hpp"
#include "lib/load/layer_table.hpp"
#include "lib/load/loaded_style.hpp"
#include "lib/load/module_rules.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

// The first tensor that is of the row's form; null when none is.
const NamedTensor* first_of(const StyleRow& row, const std::vector<NamedTensor>& tensors) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& tensor) {
    const auto name = parse_expert_name(row, tensor.name);
    return name && (name->field == Field::kCodes || name->field == Field::kScales);
  });
  return found == tensors.end() ? nullptr : &*found;
}

// An example of a row's names.
std::string example(const StyleRow& row) {
  return expert_tensor_name(row, experts_path(row.style, 0), 0, row.projections.front().word,
                            Field::kCodes);
}

// What experts are called here, and what rows would call them; no row stands for all of them.
Error no_names(const std::vector<const StyleRow*>& rows, const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> examples;
  examples.reserve(rows.size());
  for (const StyleRow* row : rows) examples.push_back(example(*row));
  const auto found = std::ranges::find_if(
      tensors, [](const NamedTensor& tensor) { return names_expert(tensor.name); });
  const std::string there = found == tensors.end() ? ""
                                                   : fmt::format("; there is {} ({})", found->name,
                                                                 dtype_name(found->spec.dtype));
  return Error::input(fmt::format(
      "no MXFP4 expert tensors {}{}",
      rows.empty() ? "of a known naming style" : "such as " + alternatives(examples), there));
}

const StyleRow& choose_row(const std::vector<NamedTensor>& tensors, const ModelConfig* config,
                           const std::optional<Style>& style) {
  if (!style && config != nullptr && !config->quantization && !config->original_gpt_oss &&
      config->architectures.empty() && config->model_type.empty()) {
    throw Error::input("says neither a model nor its quantization")
        .in_file(config->file)
        .hint("give one with --model-config, or name the style with --style");
  }
  std::vector<const StyleRow*> rows;
  for (const StyleRow& row : style_rows()) {
    const bool fits = style ? row.style == *style : config == nullptr || row_allowed(row, *config);
    if (fits) rows.push_back(&row);
  }
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const StyleRow* row) {
    return first_of(*row, tensors) != nullptr;
  });
  if (found == rows.end()) {
    if (style) {
      throw no_names(rows, tensors).add_context(fmt::format("style {}", style_name(*style)));
    }
    if (config == nullptr) throw no_names({}, tensors);
    if (rows.empty()) {
      throw Error::input(fmt::format("{}: no style of MXFP4 experts for model_type {}",
                                     config->quantization ? config->quantization->name : "none",
                                     config->model_type))
          .at_key("quant_method")
          .in_file(config->file);
    }
    throw no_names(rows, tensors).in_file(config->file);
  }
  if (style) return **found;
  if (config == nullptr) {
    throw Error::input(
        fmt::format(
            "config.json: missing; names such as {} do not say how the experts are quantized",
            first_of(**found, tensors)->name))
        .hint("give it with --model-config, or name the style with --style");
  }
  if (!config->quantization && !config->original_gpt_oss) {
    throw Error::input("missing")
        .at_key("quantization_config")
        .in_file(config->file)
        .hint("give one with --model-config, or name the style with --style");
  }
  return **found;
}

// The tensors of the style by module, and all others.
struct Collected {
  std::vector<LayerTable> tables;
  std::vector<size_t> rest;
  std::vector<std::string> warnings;
};

Collected collect(const std::vector<NamedTensor>& tensors, const StyleRow& row, bool input_scales,
                  bool biases, bool encodes_scales) {
  Collected out;
  std::unordered_map<std::string_view, size_t> by_module;
  std::string_view module;  // of the tensor before: names come in order of modules
  size_t table = 0;
  size_t ignored_biases = 0;
  size_t ignored_scales = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto name = parse_expert_name(row, tensors[i].name);
    const bool bias = name && name->field == Field::kBias && !biases;
    const bool scale = name && name->field == Field::kInputScale && !input_scales;
    ignored_biases += bias ? 1 : 0;
    ignored_scales += scale ? 1 : 0;
    if (!name || bias || scale) {
      out.rest.push_back(i);
      continue;
    }
    if (module != name->module || out.tables.empty()) {
      const auto [entry, added] = by_module.try_emplace(name->module, out.tables.size());
      if (added) out.tables.emplace_back(tensors, row, *name, encodes_scales);
      table = entry->second;
      module = name->module;
    }
    out.tables[table].add(i, *name);
  }
  if (ignored_biases != 0) {
    out.warnings.push_back(fmt::format(
        "{} expert bias tensors are not loaded: the reference does not load them in this style",
        ignored_biases));
  }
  if (ignored_scales != 0) {
    out.warnings.push_back(fmt::format(
        "{} input_scale tensors are not loaded: the config does not say static FP8 activations",
        ignored_scales));
  }
  return out;
}

// The reason why a layer's experts are not MXFP4, from its config or its tensors; empty if
// they are.
std::optional<Error> refusal_of(const LayerTable& table, const ModelConfig* config) {
  const ModuleQuantization* rule = config != nullptr && config->quantization
                                       ? find_rule(*config->quantization, table.module())
                                       : nullptr;
  if (rule != nullptr && !rule->refusal.empty()) {
    return Error::input(rule->refusal).in_file(config->file);
  }
  if (!table.not_mxfp4()) return std::nullopt;
  return Error::input("not quantized as MXFP4").at_key(table.module());
}

// Moves the layers of a mixed model that are not MXFP4 to the rest. Throws Error::input when no
// layer is left.
void set_aside(Collected& found, const StyleRow& row, const ModelConfig* config) {
  std::vector<LayerTable> ours;
  std::optional<Error> first_refusal;
  for (LayerTable& table : found.tables) {
    std::optional<Error> refusal = refusal_of(table, config);
    // What the layer has in place of MXFP4 experts is found later.
    if (row.every_layer && table.not_mxfp4()) refusal.reset();
    if (!refusal) {
      ours.push_back(std::move(table));
      continue;
    }
    if (!first_refusal) first_refusal = refusal;
    const auto members = table.members();
    found.rest.insert(found.rest.end(), members.begin(), members.end());
  }
  if (ours.empty()) throw Error(*first_refusal);
  if (first_refusal) std::sort(found.rest.begin(), found.rest.end());
  found.tables = std::move(ours);
}

// The activation key of the rule that the experts fall under.
std::string activation_of(const std::vector<NamedTensor>& tensors, const StyleRow& row,
                          const ModelConfig* config) {
  if (config == nullptr || !config->quantization) return {};
  const Quantization& quantization = *config->quantization;
  for (const NamedTensor& tensor : tensors) {
    const auto name = parse_expert_name(row, tensor.name);
    if (!name) continue;
    const ModuleQuantization* rule = find_rule(quantization, name->module);
    if (rule != nullptr && rule->refusal.empty()) return rule->activation;
  }
  return quantization.activation;
}

std::vector<ExpertLayer> build_layers(Collected& found, const StyleRow& row,
                                      const ModelConfig* config, LayerTable::Wanted wanted) {
  std::vector<ExpertLayer> layers;
  for (LayerTable& table : found.tables) {
    if (config != nullptr) wanted.num_experts = experts_stated(*config, table.draft());
    ExpertLayer layer = table.build(wanted);
    layer.index = layer_index(table, config);
    layer.draft = table.draft();
    layer.engine_prefix = engine_path(row.style, layer.index);
    if (config != nullptr) check_sizes(*config, layer.dims, layer.draft, table.sizes_from());
    LayerDims wanted_dims = layers.empty() ? layer.dims : layers.front().dims;
    if (wanted.num_experts) wanted_dims.num_experts = *wanted.num_experts;
    if (layer.dims != wanted_dims) {
      const auto [e, h, i] = layers.front().dims;
      throw Error::input(fmt::format("{} experts, hidden size {}, intermediate size {}, but {} has "
                                     "{}, {} and {}",
                                     layer.dims.num_experts, layer.dims.hidden_size,
                                     layer.dims.intermediate_size, layers.front().prefix, e, h, i))
          .at_key(table.sizes_from().name)
          .in_file(table.sizes_from().file);
    }
    layers.push_back(std::move(layer));
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const ExpertLayer& a, const ExpertLayer& b) { return a.index < b.index; });
  const auto twice = std::adjacent_find(
      layers.begin(), layers.end(),
      [](const ExpertLayer& a, const ExpertLayer& b) { return a.index == b.index; });
  if (twice != layers.end()) {
    throw Error::input(fmt::format("layer {} is both {} and {}", twice->index, twice->prefix,
                                   std::next(twice)->prefix));
  }
  return layers;
}

// Whether names of the loaded layout are the checkpoint's own: Inkling's are the same.
bool published_as_loaded(const ModelConfig* config, const FindOptions& options) {
  return config != nullptr && is_inkling(*config) && !options.attributes.contains("family");
}

}  // namespace

ModelLayers find_expert_layers(const std::vector<NamedTensor>& tensors, const ModelConfig* config,
                               const FindOptions& options) {
  const bool named = has_loaded_names(tensors) && !published_as_loaded(config, options);
  if (options.style ? *options.style == Style::kLoaded : named) {
    return find_loaded_layers(tensors, config, options);
  }
  const StyleRow& row = choose_row(tensors, config, options.style);
  ModelLayers model;
  model.activation = activation_of(tensors, row, config);
  const bool input_scales = model.activation == "fp8_per_tensor_static";
  if (input_scales && row.suffixes[static_cast<size_t>(Field::kInputScale)].empty()) {
    throw Error::input(
        "static FP8 activations of stacked expert tensors, whose input scales have no known names")
        .in_file(config->file);
  }
  const bool biases = row.bias == BiasRule::kRequired || options.generic_biases;
  Collected found = collect(tensors, row, input_scales, biases, options.encodes_scales);
  set_aside(found, row, config);
  model.warnings = std::move(found.warnings);
  if (config != nullptr && config->quantization) check_alike(found.tables, *config);
  model.style = row.style;
  model.loader = row.loader;
  model.family = options.family.value_or(row.family);
  model.order = row.order;
  model.alternating = row.loader == Loader::kInklingStacked;
  model.scale_fill = row.scale_fill;
  model.bias_dtype = row.bias_dtype;
  model.layers = build_layers(found, row, config,
                              {.num_experts = {},
                               .input_scales = input_scales,
                               .biases = biases,
                               .unfilled_biases = options.unfilled_biases});
  model.num_experts = model.layers.front().dims.num_experts;
  model.flat_scales = std::ranges::any_of(found.tables, &LayerTable::flat_scales);
  model.rest = std::move(found.rest);
  if (config != nullptr && !options.experts_only) {
    const LayerCheck check{row, tensors, model.rest, options.partial};
    check_layers(*config, check, model.layers, model.warnings);
  }
  if (row.bias == BiasRule::kNeverFilled && !biases) {
    model.warnings.push_back(
        "quant_method mxfp4 of a model that is not gpt-oss: the reference loads gate and up as "
        "halves and converts them as if they were interleaved");
  }
  return model;
}

}  // namespace mxfp4
