#include "lib/load/left_out.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/text.hpp"
#include "lib/load/module_rules.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kNoLayer = -1;  // a draft's number is not one of the model's own layers

bool leaves_out(const Quantization& quantization, const LayerTable& table) {
  return is_excluded(quantization, table.draft() ? kNoLayer : table.layer(), table.module(),
                     table.linear());
}

// "layer 3", or "layers 3-5, 7".
std::string layers_text(std::vector<int64_t> layers) {
  std::ranges::sort(layers);
  return fmt::format("layer{} {}", layers.size() == 1 ? "" : "s", number_ranges(layers));
}

// The engine makes plain weights for these layers and stops at the tensors of MXFP4, for which it
// has no parameters.
std::vector<int64_t> unquantized_by_config(const std::vector<LayerTable>& tables,
                                           const ModelConfig& config) {
  const Quantization& quantization = *config.quantization;
  std::vector<int64_t> layers;
  for (const LayerTable& table : tables) {
    // The engine calls the layers of these drafts as the checkpoint does.
    if (table.draft() && !table.module().starts_with("mtp.layers.")) continue;
    const ModuleQuantization* rule = find_rule(quantization, table.module(), table.linear());
    const bool unnamed = rule == nullptr ? quantization.named_only : rule->unnamed;
    if (unnamed || leaves_out(quantization, table)) layers.push_back(layer_index(table, &config));
  }
  return layers;
}

// The layers of which an exclusion names experts, by a name that no layer's experts have.
std::vector<int64_t> named_otherwise(const std::vector<LayerTable>& tables,
                                     const std::vector<LayerTable>& aside,
                                     const Quantization& quantization) {
  std::set<int64_t> named;
  for (const auto& [module, experts] : quantization.excluded.modules) {
    if (experts.layer) named.insert(*experts.layer);
  }
  std::vector<int64_t> layers;
  for (const std::vector<LayerTable>* list : {&tables, &aside}) {
    for (const LayerTable& table : *list) {
      if (table.draft() || !named.contains(table.layer())) continue;
      if (!leaves_out(quantization, table)) layers.push_back(table.layer());
    }
  }
  return layers;
}

}  // namespace

std::vector<std::string> left_out_warnings(const std::vector<LayerTable>& tables,
                                           const std::vector<LayerTable>& aside,
                                           const ModelConfig& config) {
  const Quantization& quantization = *config.quantization;
  std::vector<std::string> warnings;
  if (const auto layers = unquantized_by_config(tables, config); !layers.empty()) {
    warnings.push_back(fmt::format(
        "{}: the quantization leaves out the experts of {}, whose tensors are MXFP4: the "
        "engine stops when it reads them",
        config.file, layers_text(layers)));
  }
  if (const auto layers = named_otherwise(tables, aside, quantization); !layers.empty()) {
    warnings.push_back(fmt::format(
        "{}: the quantization leaves out experts of {} by a name that they do not have in the "
        "engine, which takes them for MXFP4 and stops at tensors of another kind",
        config.file, layers_text(layers)));
  }
  return warnings;
}

std::set<std::string> unknown_modules_of(const std::vector<LayerTable>& tables,
                                         const std::vector<LayerTable>& aside,
                                         const Quantization& quantization) {
  std::set<std::string> known;
  for (const std::vector<LayerTable>* list : {&tables, &aside}) {
    for (const LayerTable& table : *list) known.insert(engine_name(quantization, table.module()));
  }
  std::set<std::string> unknown;
  for (const auto& [module, experts] : quantization.excluded.modules) {
    if (!known.contains(module)) unknown.insert(module);
  }
  return unknown;
}

std::set<std::string> unnamed_words_of(const std::vector<LayerTable>& tables,
                                       const Quantization& quantization) {
  std::set<std::string> words;
  for (const LayerTable& table : tables) {
    if (table.draft()) continue;
    for (const std::string_view word : unnamed_words(quantization, table.module())) {
      words.emplace(word);
    }
  }
  return words;
}

}  // namespace mxfp4
