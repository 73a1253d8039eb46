#include "lib/load/config_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/module_rules.hpp"

namespace mxfp4 {
namespace {

void check_size(const ModelConfig& config, std::string_view key, std::optional<int64_t> said,
                int64_t held, const NamedTensor& witness) {
  if (!said || *said == held) return;
  throw Error::input(
      fmt::format("{}, but {} in {} makes it {}", *said, witness.name, witness.file, held))
      .at_key(key)
      .in_file(config.file);
}

constexpr std::string_view kLayers = "layers.";

// Properties of a layer that the names of its other tensors show.
struct OtherTensors {
  bool any = false;
  bool experts = false;  // of another form: not quantized, or not MXFP4
};

// `count`: the model's own layers. A draft, "mtp.layers.0", is numbered after them.
std::map<int64_t, OtherTensors> survey(const std::vector<NamedTensor>& tensors,
                                       const std::vector<size_t>& rest, int64_t count) {
  std::map<int64_t, OtherTensors> out;
  for (const size_t i : rest) {
    const std::string_view name = tensors[i].name;
    const size_t at = name.find(kLayers);
    if (at == std::string_view::npos) continue;
    const std::string_view tail = name.substr(at + kLayers.size());
    const auto layer = parse_index(tail.substr(0, tail.find('.')));
    if (!layer) continue;
    const bool draft = name.substr(0, at).find("mtp.") != std::string_view::npos;
    OtherTensors& seen = out[draft ? checked_add(count, *layer) : *layer];
    seen.any = true;
    seen.experts = seen.experts || tail.find(".experts.") != std::string_view::npos;
  }
  return out;
}

}  // namespace

void check_alike(const std::vector<LayerTable>& tables, const ModelConfig& config) {
  const std::string* first = nullptr;  // of the first layer's activations
  for (const LayerTable& table : tables) {
    const Quantization& quantization = *config.quantization;
    const ModuleQuantization* rule = find_rule(quantization, table.module());
    const std::string& activation = rule == nullptr ? quantization.activation : rule->activation;
    if (first == nullptr) first = &activation;
    if (activation == *first) continue;
    const auto named = [](const std::string& word) { return word.empty() ? "none" : word; };
    throw Error::input(fmt::format("activations quantized as {}, but those of {} as {}: the engine "
                                   "chooses a backend for each, a blob holds the bytes of one",
                                   named(activation), tables.front().module(), named(*first)))
        .at_key(table.module())
        .in_file(config.file);
  }
}

std::optional<bool> config_has_experts(const ModelConfig& config, int64_t index) {
  if (!config.first_k_dense_replace && !config.moe_layer_freq && !config.decoder_sparse_step &&
      config.mlp_only_layers.empty()) {
    return std::nullopt;
  }
  const auto& only = config.mlp_only_layers;
  const int64_t frequency = std::max<int64_t>(config.moe_layer_freq.value_or(1), 1);
  const int64_t step = std::max<int64_t>(config.decoder_sparse_step.value_or(1), 1);
  return index >= config.first_k_dense_replace.value_or(0) && index % frequency == 0 &&
         (index + 1) % step == 0 && std::find(only.begin(), only.end(), index) == only.end();
}

std::optional<int64_t> experts_stated(const ModelConfig& config, bool draft) {
  return draft && config.draft_experts ? config.draft_experts : config.num_experts;
}

void check_sizes(const ModelConfig& config, const LayerDims& dims, bool draft,
                 const NamedTensor& witness) {
  if (!config.quantization_only && !config.hidden_size) {
    throw Error::input("missing").at_key("hidden_size").in_file(config.file);
  }
  check_size(config, config.hidden_size_key, config.hidden_size, dims.hidden_size, witness);
  check_size(config, config.intermediate_size_key, config.intermediate_size, dims.intermediate_size,
             witness);
  const bool own = draft && config.draft_experts;
  check_size(config, own ? config.draft_experts_key : config.num_experts_key,
             experts_stated(config, draft), dims.num_experts, witness);
}

void check_layers(const ModelConfig& config, const LayerCheck& check,
                  const std::vector<ExpertLayer>& layers, std::vector<std::string>& warnings) {
  if (!config.num_hidden_layers) return;
  const auto& [row, tensors, rest, stated_partial] = check;
  // A folder of draft stages only is the model of --speculative-config.
  const bool partial = stated_partial || std::ranges::all_of(layers, &ExpertLayer::draft);
  const int64_t count = *config.num_hidden_layers;
  // Prediction layers that are named like the model's own are numbered after them.
  const int64_t more = config.num_nextn_predict_layers.value_or(0);
  std::map<int64_t, OtherTensors> others;
  if (!row.every_layer) others = survey(tensors, rest, count);
  int64_t absent = 0;
  auto found = layers.begin();
  for (int64_t index = 0; index < count; ++index) {
    if (found != layers.end() && found->index == index) {
      ++found;
      continue;
    }
    const auto other = others.find(index);
    const OtherTensors seen = other == others.end() ? OtherTensors{} : other->second;
    const bool expected = row.every_layer || count > static_cast<int64_t>(tensors.size()) ||
                          config_has_experts(config, index).value_or(!seen.any);
    if (!expected || seen.experts) continue;
    if (!partial) {
      throw Error::input(fmt::format("{}, but layer {} has no expert tensors", count, index))
          .at_key("num_hidden_layers")
          .in_file(config.file);
    }
    ++absent;
    if (count <= static_cast<int64_t>(tensors.size())) continue;
    // A count above the number of tensors may be any number: its layers are not walked one by one.
    absent = count - std::min(count, static_cast<int64_t>(layers.size()));
    break;
  }
  if (absent > 0) {
    warnings.push_back(fmt::format("{}: num_hidden_layers: {}, but {} of these layers are not here",
                                   config.file, count, absent));
  }
  for (; found != layers.end(); ++found) {
    if (found->draft || found->index - count < more) continue;  // count + more may overflow
    throw Error::input(fmt::format("{}{}, but there are tensors of {}", count,
                                   more > 0 ? fmt::format(" and {} more", more) : "",
                                   found->prefix))
        .at_key("num_hidden_layers")
        .in_file(config.file);
  }
  std::vector<int64_t> other_experts;
  for (const auto& [index, seen] : others) {
    const bool ours = std::ranges::find(layers, index, &ExpertLayer::index) != layers.end();
    if (seen.experts && !ours) other_experts.push_back(index);
  }
  if (other_experts.empty()) return;
  const bool one = other_experts.size() == 1;
  warnings.push_back(fmt::format("layer{} {} {} experts that are not MXFP4; they stay",
                                 one ? "" : "s", number_ranges(other_experts),
                                 one ? "has" : "have"));
}

}  // namespace mxfp4
