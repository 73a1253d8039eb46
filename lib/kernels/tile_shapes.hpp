// Which instructions a group of registers takes: one piece of code each for the shapes that occur
// (lib/kernels/tiles), as looking at run time costs a third of them.
#pragma once

#include <cstddef>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

struct TileShape {
  int exchanges = 0;
  size_t registers = 0;
  bool loads_whole = false;   // the blocks of a register lie side by side,
  bool stores_whole = false;  // and where they are stored
  bool stores_run = false;    // and the registers of a group after one another
  bool first_order = false;
  bool swap = false;
  bool lead_exchange = false;
  bool nibble_exchange = false;
  int first_exchange = 0;
  bool last_order = false;
  int block_exchange = -1;  // -1: none

  bool operator==(const TileShape&) const = default;
};

[[nodiscard]] inline TileShape shape_of(const TilePlan& plan) {
  const TileNetwork& network = plan.network;
  bool run = plan.stores.block == 16;
  for (size_t i = 0; i < plan.stores.offset.size(); ++i) {
    run = run && plan.stores.offset[i] == 32 * static_cast<int64_t>(i);
  }
  return {.exchanges = network.exchanges,
          .registers = plan.load_offset.size(),
          .loads_whole = plan.load_block == 16,
          .stores_whole = plan.stores.block == 16,
          .stores_run = run,
          .first_order = network.first_order.has_value(),
          .swap = network.swap,
          .lead_exchange = network.lead_exchange,
          .nibble_exchange = network.nibble_exchange,
          .first_exchange = network.first_exchange,
          .last_order = network.last_order.has_value(),
          .block_exchange = plan.block_exchange.value_or(-1)};
}

// Those of every layout's weights, both ways, at gpt-oss's sizes and at round ones; a test holds
// the table to that. Others run too, slower.
inline constexpr TileShape kKnownTileShapes[] = {
    {0, 8, false, true, true, false, false, false, false, 0, false, -1},
    {1, 8, false, false, false, true, false, false, false, 0, true, -1},
    {1, 8, false, true, false, false, false, false, false, 0, false, 0},
    {1, 8, false, true, false, true, false, false, false, 0, true, -1},
    {1, 8, true, true, true, false, false, false, false, 0, false, 0},
    {1, 8, true, true, false, false, false, false, true, 0, true, -1},
    {1, 8, true, true, false, true, false, true, true, 1, true, -1},
    {2, 8, false, true, false, true, false, true, true, 0, true, -1},
    {2, 8, true, true, false, false, false, true, true, 0, true, 1},
    {3, 8, false, true, false, true, false, true, true, 0, true, -1},
    {3, 8, false, true, false, true, false, true, true, 1, true, -1},
    {3, 8, true, true, false, true, false, false, true, 0, true, 2},
    {3, 8, true, true, false, true, false, true, true, 0, true, 2},
    {4, 16, false, true, false, false, false, false, true, 0, true, -1},
    {4, 16, false, true, false, true, false, true, true, 1, true, -1},
};

}  // namespace mxfp4::kernels
