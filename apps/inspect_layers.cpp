#include "apps/inspect_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/text_layout.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// "1.41 GiB" or "1.40 GiB to 1.42 GiB".
std::string span_text(int64_t least, int64_t most) {
  const std::string from = human_bytes(least);
  const std::string to = human_bytes(most);
  return from == to ? from : fmt::format("{} to {}", from, to);
}

}  // namespace

Json layer_sizes_json(const std::vector<LayerSize>& layers) {
  Json json = Json::array();
  for (const LayerSize& layer : layers) {
    json.push_back({{"layer", layer.layer},
                    {"num_experts", layer.dims.num_experts},
                    {"hidden_size", layer.dims.hidden_size},
                    {"intermediate_size", layer.dims.intermediate_size},
                    {"data_bytes", layer.data_bytes},
                    {"stored_bytes", layer.stored_bytes}});
  }
  return json;
}

std::string layer_sizes_text(const Console& console, const std::vector<LayerSize>& layers) {
  std::vector<std::vector<std::string>> rows{
      {"layers", "experts", "H", "I", "data a layer", "stored a layer"}};
  for (auto begin = layers.begin(); begin != layers.end();) {
    const auto end = std::find_if(begin, layers.end(), [&](const LayerSize& layer) {
      return layer.dims != begin->dims || layer.data_bytes != begin->data_bytes;
    });
    const std::vector<LayerSize> alike(begin, end);
    const auto [least, most] = std::ranges::minmax_element(alike, {}, &LayerSize::stored_bytes);
    rows.push_back({number_ranges(layer_numbers(alike)), fmt::format("{}", begin->dims.num_experts),
                    fmt::format("{}", begin->dims.hidden_size),
                    fmt::format("{}", begin->dims.intermediate_size),
                    human_bytes(begin->data_bytes),
                    span_text(least->stored_bytes, most->stored_bytes)});
    begin = end;
  }
  return console.table(rows);
}

}  // namespace mxfp4
