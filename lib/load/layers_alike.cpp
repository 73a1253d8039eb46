#include "lib/load/layers_alike.hpp"

#include <fmt/format.h>

#include <string>

#include "lib/core/error.hpp"
#include "lib/load/module_rules.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

void check_alike(const std::vector<LayerTable>& tables, const StyleRow& row,
                 const ModelConfig& config) {
  const std::string* first = nullptr;  // of the first layer's activations
  for (const LayerTable& table : tables) {
    const Quantization& quantization = *config.quantization;
    for (const std::vector<std::string>& linears : linear_sets(row, table.module())) {
      const std::string differing = differing_projections(quantization, table.module(), linears);
      if (!differing.empty()) {
        throw Error::input(differing).at_key(table.module()).in_file(config.file);
      }
    }
    const ModuleQuantization* rule = find_rule(quantization, table.module(), table.linear());
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

}  // namespace mxfp4
