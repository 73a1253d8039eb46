#include "lib/kernels/tile_shapes.hpp"

#include <algorithm>
#include <iterator>

namespace mxfp4::kernels {

TileShape shape_of(const TilePlan& plan) {
  const TileNetwork& network = plan.network;
  bool run = plan.stores.block == 16;
  for (size_t i = 0; i < plan.stores.offset.size(); ++i) {
    run = run && plan.stores.offset[i] == 32 * static_cast<int64_t>(i);
  }
  return {.registers = plan.load_offset.size(),
          .loads_whole = plan.load_block == 16,
          .stores_whole = plan.stores.block == 16,
          .stores_run = run,
          .first_order = network.first_order.has_value(),
          .swap = network.swap,
          .lead_exchange = network.lead_exchange,
          .nibble_exchange = network.nibble_exchange,
          .first_exchange = network.first_exchange,
          .exchanges = network.exchanges,
          .last_order = network.last_order.has_value(),
          .block_exchange = plan.block_exchange.value_or(-1)};
}

std::optional<size_t> tile_row(const TileShape& shape) {
  const auto serves = [&](const TileRow& row) {
    TileShape asked = shape;
    asked.loads_whole = asked.loads_whole && row.shape.loads_whole;
    asked.stores_whole = asked.stores_whole && row.shape.stores_whole;
    asked.stores_run = asked.stores_run && row.shape.stores_run;
    return asked == row.shape;
  };
  const auto found = std::ranges::find_if(kTileRows, serves);
  if (found == std::end(kTileRows)) return std::nullopt;
  return static_cast<size_t>(found - std::begin(kTileRows));
}

}  // namespace mxfp4::kernels
