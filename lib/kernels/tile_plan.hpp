// A plan (plan_tiles.hpp makes it): how a permutation of nibbles or bytes is cut into small tiles
// that vector registers can turn.
//
// Every axis of size 2^a * m gives a address bits and one loop of m steps, so the permutation moves
// address bits. Where these are too few, as in rows of 92 bytes, a loop of m steps becomes address
// bits and a shorter loop, whose last step goes back over units that were moved already: of 23
// units, eight from 0, from 8 and from 15 on.
//
// A tile takes the lowest bits of the input address (whole cache lines are read) and the lowest
// bits of the output address (whole lines are written); all other bits and loops are walked. Inside
// a tile, 32 nibbles of consecutive input are 5 lane bits of a 16-byte block. The lane bits that
// the output does not want leave for others that it wants: each exchange is one interleave of two
// registers. Nothing here knows a layout.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/kernels/walk.hpp"

namespace mxfp4::kernels {

// The work inside the registers, in this order; steps that are not needed are off.
struct TileNetwork {
  using ByteOrder = std::array<uint8_t, 16>;  // byte i of a block is taken from byte order[i]
  std::optional<ByteOrder> first_order;
  bool swap = false;  // without exchanges only: nibbles 1 and 2 of every four change places
  // Register bit 0 against the highest byte bit, then against the nibble bit.
  bool lead_exchange = false;
  bool nibble_exchange = false;
  // Register bits from first_exchange to exchanges - 1 against the highest byte bit.
  int first_exchange = 0;
  int exchanges = 0;
  std::optional<ByteOrder> last_order;
};

// Where the registers of a tile's groups are stored, in bytes from the tile's first.
struct TileStores {
  std::vector<int64_t> offset;  // of each register of a group
  int64_t block = 0;            // from a register's first block to its second
  std::vector<int64_t> group;   // of each group
};

// A tile's output with its pieces of consecutive bytes side by side: made in a buffer that stays in
// the first-level cache, then stored past the caches piece by piece. Stores that jump from row to
// row cost more than this copy (tests/bench/README.md).
struct TileStaging {
  TileStores stores;
  int64_t piece_bytes = 0;      // whole lines
  std::vector<int64_t> pieces;  // where they belong in the output
};

// All offsets in bytes. A tile is done in groups of registers of two 16-byte blocks.
struct TilePlan {
  static constexpr int kMaxExchanges = 4;
  static constexpr size_t kRegisterBits = 3;  // a group has at least 8 registers where it can
  static constexpr int64_t kStagingBytes = 64 << 10;

  TileNetwork network;
  std::vector<int64_t> load_offset;   // of each register of a group
  int64_t load_block = 0;             // from a register's first block to its second
  std::vector<int64_t> group_load;    // of each group of a tile
  std::optional<int> block_exchange;  // this register bit changes places with the block at the end
  TileStores stores;
  // Empty when not every tile writes whole lines of an aligned output.
  std::optional<TileStaging> staging;
  LoopNest tiles;  // walked in this order

  std::optional<size_t> row;  // the row of kTileRows (tile_shapes.hpp) whose code runs the groups
  LoopNest units;             // the same permutation unit by unit: its definition
  int64_t unit_bits = 0;
};

}  // namespace mxfp4::kernels
