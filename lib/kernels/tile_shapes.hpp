// The instructions that a group of registers takes. Each row of the table is compiled on its own
// (tiles.cpp): a group that looks at its shape while it runs takes a third more instructions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

struct TileShape {
  size_t registers = 8;       // of a group; a power of two
  bool loads_whole = false;   // the two blocks of a register lie side by side where it is loaded,
  bool stores_whole = false;  // and where it is stored,
  bool stores_run = false;    // and the registers of a group are stored one after another
  // Steps of TileNetwork.
  bool first_order = false;
  bool swap = false;
  bool lead_exchange = false;
  bool nibble_exchange = false;
  int first_exchange = 0;
  int exchanges = 0;
  bool last_order = false;
  int block_exchange = -1;  // TilePlan::block_exchange; -1: none

  bool operator==(const TileShape&) const = default;
};

[[nodiscard]] TileShape shape_of(const TilePlan& plan);

struct TileRow {
  std::string_view name;
  TileShape shape;
};

// The shapes of every layout's weights and large scales, both ways, at gpt-oss's sizes and at round
// ones; a test holds the table to that. Rows that ask for more (whole loads, runs) come before rows
// that would serve too.
inline constexpr TileRow kTileRows[] = {
    {.name = "16-byte blocks, stored in runs", .shape = {.stores_whole = true, .stores_run = true}},
    {.name = "16-byte blocks", .shape = {.stores_whole = true}},
    {.name = "interleave halves, stored in runs",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .stores_run = true,
               .exchanges = 1,
               .block_exchange = 0}},
    {.name = "interleave halves",
     .shape = {.stores_whole = true, .exchanges = 1, .block_exchange = 0}},
    {.name = "separate halves",
     .shape = {.stores_whole = true, .first_order = true, .exchanges = 1, .last_order = true}},
    {.name = "separate halves of odd rows",
     .shape = {.first_order = true, .exchanges = 1, .last_order = true}},
    {.name = "8-byte blocks", .shape = {.stores_whole = true, .exchanges = 1, .last_order = true}},
    {.name = "cutlass-sm90",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .nibble_exchange = true,
               .exchanges = 1,
               .last_order = true}},
    {.name = "cutlass-sm90 back",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .first_exchange = 1,
               .exchanges = 1,
               .last_order = true}},
    {.name = "mma, 8-bit activations",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 2,
               .last_order = true,
               .block_exchange = 1}},
    {.name = "mma, 8-bit activations, back",
     .shape = {.stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 2,
               .last_order = true}},
    {.name = "mma, 8-bit activations, packed K",
     .shape = {.stores_whole = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 2,
               .last_order = true,
               .block_exchange = 1}},
    {.name = "mma, 8-bit activations, packed K, back",
     .shape = {.stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 2,
               .last_order = true,
               .block_exchange = 0}},
    {.name = "mma, 4-bit activations",
     .shape = {.stores_whole = true, .exchanges = 2, .last_order = true, .block_exchange = 1}},
    {.name = "mma",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 3,
               .last_order = true,
               .block_exchange = 2}},
    {.name = "mma back",
     .shape = {.stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .exchanges = 3,
               .last_order = true}},
    {.name = "mma, native",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .first_order = true,
               .exchanges = 3,
               .last_order = true,
               .block_exchange = 2}},
    {.name = "wgmma",
     .shape = {.loads_whole = true,
               .stores_whole = true,
               .first_order = true,
               .nibble_exchange = true,
               .exchanges = 3,
               .last_order = true,
               .block_exchange = 2}},
    {.name = "wgmma back",
     .shape = {.stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .first_exchange = 1,
               .exchanges = 3,
               .last_order = true}},
    {.name = "vnni32",
     .shape = {.registers = 16,
               .stores_whole = true,
               .nibble_exchange = true,
               .exchanges = 4,
               .last_order = true}},
    {.name = "vnni32 back",
     .shape = {.registers = 16,
               .stores_whole = true,
               .first_order = true,
               .lead_exchange = true,
               .nibble_exchange = true,
               .first_exchange = 1,
               .exchanges = 4,
               .last_order = true}},
    {.name = "scales, 2 exchanges", .shape = {.exchanges = 2, .last_order = true}},
    {.name = "scales, 3 exchanges", .shape = {.exchanges = 3, .last_order = true}},
    {.name = "scales, ordered, 3 exchanges",
     .shape = {.first_order = true, .exchanges = 3, .last_order = true}},
    {.name = "scales, 4 exchanges", .shape = {.registers = 16, .exchanges = 4, .last_order = true}},
};

// The first row whose code serves `shape`: it takes the same steps, and assumes no more of where
// the blocks lie than `shape` states.
[[nodiscard]] std::optional<size_t> tile_row(const TileShape& shape);

}  // namespace mxfp4::kernels
