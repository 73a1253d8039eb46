#include "lib/load/loaded_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/layer_table.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

// The attributes that decide how bytes are read. `layout` is read by the container's own code.
constexpr std::array<std::string_view, 10> kBinding = {
    "layout",  "family",  "w13_order",   "bias_dtype",        "scale_fill",
    "tp_size", "ep_size", "num_experts", "intermediate_size", "hidden_size"};

constexpr std::array kWords = {ProjectionWord{"w13", Projection::kGateUp},
                               ProjectionWord{"w2", Projection::kDown}};
constexpr StyleRow kRow = {
    .style = Style::kLoaded,
    .marker = ".",
    .stacked = true,
    .projections = kWords,
    .suffixes = {"_weight", "_weight_scale", "_bias", "_input_scale"},
    .methods = {},
    .model = ModelRule::kAny,
    .bias = BiasRule::kIgnored,
    .every_layer = false,
    .loader = Loader::kLoaded,
    .family = Family::kGptOss,
    .order = W13Order::kInterleaved,
    .scale_fill = std::byte{0},
    .bias_dtype = DType::kBF16,
    .takes_exponents = true,
    .encodes = false,
    .method = {},
};

// The first component that is a number; empty if none is.
std::optional<int64_t> layer_number(std::string_view prefix) {
  while (!prefix.empty()) {
    const size_t dot = std::min(prefix.find('.'), prefix.size());
    if (const auto index = parse_index(prefix.substr(0, dot))) return index;
    prefix.remove_prefix(std::min(dot + 1, prefix.size()));
  }
  return std::nullopt;
}

bool is_draft(std::string_view prefix) { return prefix.starts_with("mtp."); }

std::optional<std::string> attribute(const FindOptions& options, const std::string& key) {
  const auto found = options.attributes.find(key);
  if (found == options.attributes.end()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> number(const FindOptions& options, const std::string& key) {
  const auto text = attribute(options, key);
  if (!text) return std::nullopt;
  const auto value = parse_index(*text);
  if (!value) throw Error::input(fmt::format("attribute {}: {} is not a size", key, *text));
  return value;
}

// family and w13_order.
void read_traits(ModelLayers& model, const FindOptions& options) {
  std::optional<Family> family = options.family;
  if (const auto text = attribute(options, "family"); text && !family) {
    family = family_from_name(*text);
    if (!family) {
      throw Error::input(fmt::format("attribute family: {} is neither gpt_oss nor generic", *text));
    }
  }
  if (!family) {
    throw Error::usage("the input is in the loaded layout and does not say its family")
        .hint("give --family gpt_oss or --family generic");
  }
  model.family = *family;
  model.order = *family == Family::kGptOss ? W13Order::kInterleaved : W13Order::kHalves;
  if (const auto text = attribute(options, "w13_order")) {
    const auto order = w13_order_from_name(*text);
    if (!order) {
      throw Error::input(
          fmt::format("attribute w13_order: {} is neither interleaved nor halves", *text));
    }
    model.order = *order;
  }
}

// Quark's loader leaves biases in F32. Other loaders round them to BF16; F32 in their inputs comes
// from makers that have no BF16 type.
void read_bias_dtype(ModelLayers& model, const ModelConfig* config, const FindOptions& options) {
  const auto text = attribute(options, "bias_dtype");
  if (text && *text != "BF16" && *text != "F32") {
    throw Error::input(fmt::format("attribute bias_dtype: {} is neither BF16 nor F32", *text));
  }
  const bool quark =
      config != nullptr && config->quantization && config->quantization->name == "quark";
  const bool wide = text ? *text == "F32" : quark;
  model.bias_dtype = wide ? DType::kF32 : DType::kBF16;
  const auto rounded =
      std::find_if(model.layers.begin(), model.layers.end(), [](const ExpertLayer& layer) {
        return layer.has(Slot::kW13Bias) && layer.slot(Slot::kW13Bias).dtype != DType::kBF16;
      });
  if (!wide && !text && rounded != model.layers.end()) {
    model.warnings.push_back(
        fmt::format("the biases of {} are rounded from {} to BF16; an attribute bias_dtype=F32 "
                    "keeps them",
                    rounded->prefix, dtype_name(rounded->slot(Slot::kW13Bias).dtype)));
  }
}

// The value of padded scales; a loader of Quark checkpoints leaves 1.
void read_scale_fill(ModelLayers& model, const FindOptions& options) {
  const auto fill = number(options, "scale_fill");
  if (fill && *fill > 255) {
    throw Error::input(fmt::format("attribute scale_fill: {} is not a byte", *fill));
  }
  model.scale_fill = static_cast<std::byte>(fill.value_or(0));
}

// Checks the sizes that the attributes state. Tensors may be larger: the rest is padding.
void check_stated(ModelLayers& model, const FindOptions& options) {
  model.splits_experts = number(options, "ep_size").value_or(1) == 1;
  const bool whole = number(options, "tp_size").value_or(1) == 1;
  const auto experts = number(options, "num_experts");
  const auto hidden = number(options, "hidden_size");
  const auto inter = number(options, "intermediate_size");
  for (const ExpertLayer& layer : model.layers) {
    const auto [e, h, i] = layer.dims;
    if (experts && (model.splits_experts ? *experts != e : *experts < e)) {
      throw Error::input(
          fmt::format("attribute num_experts: {}, but {} holds {}", *experts, layer.prefix, e));
    }
    if (hidden && *hidden > h) {
      throw Error::input(
          fmt::format("attribute hidden_size: {}, but {} holds {}", *hidden, layer.prefix, h));
    }
    if (inter && whole && *inter > i) {
      throw Error::input(
          fmt::format("attribute intermediate_size: {}, but {} holds {}", *inter, layer.prefix, i));
    }
    model.splits_intermediate = model.splits_intermediate && whole && inter == i;
  }
}

// A config's sizes are those before padding and slicing.
void check_config(const ModelLayers& model, const ModelConfig& config) {
  for (const ExpertLayer& layer : model.layers) {
    const auto [experts, hidden, inter] = layer.dims;
    if (config.hidden_size.value_or(0) > hidden) {
      throw Error::input(
          fmt::format("{}, but {} holds {}", *config.hidden_size, layer.prefix, hidden))
          .at_key(config.hidden_size_key)
          .in_file(config.file);
    }
    const auto stated = experts_stated(config, is_draft(layer.prefix));
    if (stated.value_or(experts) < experts) {
      throw Error::input(fmt::format("{}, but {} holds {}", *stated, layer.prefix, experts))
          .at_key(config.num_experts_key)
          .in_file(config.file);
    }
  }
}

// Prediction layers ("mtp.0.ffn.experts") count on after the model's own, as in checkpoints.
int64_t first_draft_index(const ModelLayers& model, const ModelConfig* config) {
  if (config != nullptr && config->num_hidden_layers) return *config->num_hidden_layers;
  int64_t next = 0;
  for (const ExpertLayer& layer : model.layers) {
    if (is_draft(layer.prefix)) continue;
    next = std::max(next, layer_number(layer.prefix).value_or(-1) + 1);
  }
  return next;
}

void number_layers(ModelLayers& model, const ModelConfig* config) {
  const int64_t first_draft = first_draft_index(model, config);
  std::set<int64_t> taken;
  for (ExpertLayer& layer : model.layers) {
    auto index = layer_number(layer.prefix);
    layer.draft = is_draft(layer.prefix);
    if (index && layer.draft) index = checked_add(first_draft, *index);
    layer.index = index.value_or(-1);
    if (index && !taken.insert(*index).second) {
      throw Error::input(
          fmt::format("{}: layer {} is there with another prefix, too", layer.prefix, *index));
    }
  }
  int64_t next = 0;
  for (ExpertLayer& layer : model.layers) {
    if (layer.index >= 0) continue;
    while (!taken.insert(next).second) ++next;
    layer.index = next;
  }
  std::sort(model.layers.begin(), model.layers.end(),
            [](const ExpertLayer& a, const ExpertLayer& b) { return a.index < b.index; });
}

}  // namespace

bool has_loaded_names(const std::vector<NamedTensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const NamedTensor& tensor) {
    const auto name = parse_expert_name(kRow, tensor.name);
    return name && name->field == Field::kCodes;
  });
}

std::map<std::string, std::string> binding_attributes(
    const std::map<std::string, std::string>& attributes,
    const std::vector<std::string_view>& names) {
  std::map<std::string, std::string> binding;
  for (const std::string_view key : kBinding) {
    const auto stated = attributes.find(std::string(key));
    if (stated != attributes.end()) binding.insert(*stated);
  }
  for (const std::string_view name : names) {
    const auto parsed = parse_expert_name(kRow, name);
    if (!parsed) continue;
    binding.emplace("scale_fill", "0");
    // Else the config decides.
    if (parsed->field == Field::kBias) binding.emplace("bias_dtype", "not stated");
  }
  return binding;
}

ModelLayers find_loaded_layers(const std::vector<NamedTensor>& tensors, const ModelConfig* config,
                               const FindOptions& options) {
  ModelLayers model;
  std::vector<LayerTable> tables;
  std::unordered_map<std::string_view, size_t> by_prefix;
  std::vector<bool> input_scales;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto name = parse_expert_name(kRow, tensors[i].name);
    if (!name) {
      model.rest.push_back(i);
      continue;
    }
    const auto [entry, added] = by_prefix.try_emplace(name->module, tables.size());
    if (added) {
      tables.emplace_back(tensors, kRow, *name, /*encodes_scales=*/false);
      input_scales.push_back(false);
    }
    tables[entry->second].add(i, *name);
    if (name->field == Field::kInputScale) input_scales[entry->second] = true;
  }
  if (tables.empty()) throw Error::input("no tensors named <prefix>.w13_weight");
  for (size_t i = 0; i < tables.size(); ++i) {
    model.layers.push_back(
        tables[i].build({.num_experts = {}, .input_scales = input_scales[i], .biases = true}));
  }
  number_layers(model, config);
  model.num_experts = model.layers.front().dims.num_experts;
  read_traits(model, options);
  read_bias_dtype(model, config, options);
  read_scale_fill(model, options);
  check_stated(model, options);
  if (config != nullptr) {
    check_config(model, *config);
    model.activation = config->quantization ? config->quantization->activation : "";
  }
  return model;
}

}  // namespace mxfp4
