#include "lib/load/loaded_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

// The attributes that decide how bytes are read. `layout` is read by the container's own code.
constexpr std::array<std::string_view, 10> kBinding = {
    "layout",  "family",  "w13_order",   "bias_dtype",        "scale_fill",
    "tp_size", "ep_size", "num_experts", "intermediate_size", "hidden_size"};

constexpr size_t kNoTensor = std::numeric_limits<size_t>::max();

struct Parsed {
  std::string_view prefix;
  Slot slot;
};

std::optional<Parsed> parse(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto slot = slot_from_name(name.substr(dot + 1));
  if (!slot) return std::nullopt;
  return Parsed{name.substr(0, dot), *slot};
}

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

struct Group {
  std::string prefix;
  std::array<size_t, kAllSlots.size()> tensors;
};

// A stored dtype as the bytes we carry it in; a 16-bit integer bias is the bits of BF16.
std::optional<DType> carried_dtype(Slot slot, DType dtype) {
  switch (slot) {
    case Slot::kW13Weight:
    case Slot::kW2Weight:
      if (dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kF4) return DType::kU8;
      return std::nullopt;
    case Slot::kW13WeightScale:
    case Slot::kW2WeightScale:
      if (dtype == DType::kU8 || dtype == DType::kF8E8M0) return DType::kU8;
      return std::nullopt;
    case Slot::kW13Bias:
    case Slot::kW2Bias:
      if (dtype == DType::kU16) return DType::kBF16;
      [[fallthrough]];
    default:
      if (dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32) return dtype;
      return std::nullopt;
  }
}

LayerDims read_dims(const NamedTensor& w13) {
  const Shape& shape = w13.spec.shape;
  if (shape.rank() != 3 || shape[1] % 2 != 0) {
    refuse_tensor(w13,
                  fmt::format("shape {} must be [experts, 2 * intermediate size, hidden size / 2]",
                              shape.to_string()));
  }
  const int64_t codes = w13.spec.dtype == DType::kF4 ? 1 : kCodesPerByte;
  LoadedSpec spec;
  spec.dims = {shape[0], checked_mul(shape[2], codes), shape[1] / 2};
  in_context(w13.file, [&] { in_context(w13.name, [&] { spec.check(); }); });
  if (shape[0] == 0 || shape[1] == 0)
    refuse_tensor(w13, fmt::format("shape {} is empty", shape.to_string()));
  return spec.dims;
}

SlotSource read_slot(const NamedTensor& found, size_t index, Slot slot, const LayerDims& dims) {
  const auto dtype = carried_dtype(slot, found.spec.dtype);
  if (!dtype)
    refuse_tensor(found,
                  fmt::format("{} cannot be {}", slot_name(slot), dtype_name(found.spec.dtype)));
  LoadedSpec spec{dims, DType::kBF16, true};
  const Shape whole = spec.tensor(slot).shape;
  std::vector<int64_t> want(whole.dims().begin(), whole.dims().end());
  if (found.spec.dtype == DType::kF4) want.back() *= kCodesPerByte;
  if (found.spec.shape != Shape(want)) {
    refuse_tensor(
        found, fmt::format("shape {} instead of {} ({} experts, hidden size {}, intermediate size "
                           "{})",
                           found.spec.shape.to_string(), Shape(want).to_string(), dims.num_experts,
                           dims.hidden_size, dims.intermediate_size));
  }
  SlotSource source;
  source.dtype = *dtype;
  const int64_t share = found.spec.bytes() / dims.num_experts;
  for (int64_t expert = 0; expert < dims.num_experts; ++expert) {
    source.experts.push_back({Extent{index, expert * share, share}});
  }
  return source;
}

constexpr std::array kRequiredSlots = {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale,
                                       Slot::kW2WeightScale};
// Both slots of a pair are there, or neither.
constexpr std::array kPairs = {std::array{Slot::kW13Bias, Slot::kW2Bias},
                               std::array{Slot::kW13InputScale, Slot::kW2InputScale}};

ExpertLayer read_layer(const std::vector<NamedTensor>& tensors, const Group& group) {
  const auto at = [&](Slot slot) { return group.tensors[static_cast<size_t>(slot)]; };
  const auto witness = std::find_if(group.tensors.begin(), group.tensors.end(),
                                    [](size_t i) { return i != kNoTensor; });
  const auto require = [&](Slot slot) {
    if (at(slot) != kNoTensor) return;
    throw Error::input(fmt::format("missing; the layer also has {}", tensors[*witness].name))
        .at_key(fmt::format("{}.{}", group.prefix, slot_name(slot)))
        .in_file(tensors[*witness].file);
  };
  for (const Slot slot : kRequiredSlots) require(slot);
  for (const auto& [w13, w2] : kPairs) {
    if (at(w13) != kNoTensor) require(w2);
    if (at(w2) != kNoTensor) require(w13);
  }
  ExpertLayer layer;
  layer.prefix = group.prefix;
  const NamedTensor& w13 = tensors[at(Slot::kW13Weight)];
  if (!carried_dtype(Slot::kW13Weight, w13.spec.dtype)) {
    refuse_tensor(w13, fmt::format("w13_weight cannot be {}", dtype_name(w13.spec.dtype)));
  }
  layer.dims = read_dims(w13);
  for (const Slot slot : kAllSlots) {
    if (at(slot) == kNoTensor) continue;
    layer.slots[static_cast<size_t>(slot)] =
        read_slot(tensors[at(slot)], at(slot), slot, layer.dims);
  }
  return layer;
}

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
    const auto parsed = parse(tensor.name);
    return parsed && (parsed->slot == Slot::kW13Weight || parsed->slot == Slot::kW2Weight);
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
    const auto parsed = parse(name);
    if (!parsed) continue;
    binding.emplace("scale_fill", "0");
    const bool bias = parsed->slot == Slot::kW13Bias || parsed->slot == Slot::kW2Bias;
    if (bias) binding.emplace("bias_dtype", "not stated");  // the config decides
  }
  return binding;
}

ModelLayers find_loaded_layers(const std::vector<NamedTensor>& tensors, const ModelConfig* config,
                               const FindOptions& options) {
  ModelLayers model;
  std::vector<Group> groups;
  std::unordered_map<std::string_view, size_t> by_prefix;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto parsed = parse(tensors[i].name);
    if (!parsed) {
      model.rest.push_back(i);
      continue;
    }
    const auto [entry, added] = by_prefix.try_emplace(parsed->prefix, groups.size());
    if (added) {
      groups.push_back({std::string(parsed->prefix), {}});
      groups.back().tensors.fill(kNoTensor);
    }
    size_t& place = groups[entry->second].tensors[static_cast<size_t>(parsed->slot)];
    if (place != kNoTensor)
      refuse_tensor(tensors[i], fmt::format("given twice, also in {}", tensors[place].file));
    place = i;
  }
  if (groups.empty()) throw Error::input("no tensors named <prefix>.w13_weight");
  for (const Group& group : groups) model.layers.push_back(read_layer(tensors, group));
  number_layers(model, config);
  model.num_experts = model.layers.front().dims.num_experts;
  read_traits(model, options);
  read_bias_dtype(model, config, options);
  read_scale_fill(model, options);
  check_stated(model, options);
  if (config != nullptr) {
    check_config(model, *config);
    model.activation = config->quantization ? config->quantization->activation : "";
    model.other_static = config->quantization && config->quantization->other_static;
  }
  return model;
}

}  // namespace mxfp4
