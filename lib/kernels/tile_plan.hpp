// How a permutation of nibbles or bytes is cut into small tiles that vector registers can turn.
//
// Every axis of size 2^a * m gives a address bits and one loop of m steps, so the permutation moves
// address bits. A tile takes the lowest bits of the input address (whole cache lines are read) and
// the lowest bits of the output address (whole lines are written); all other bits and loops are
// walked. Inside a tile, 32 nibbles of consecutive input are 5 lane bits of a 16-byte block. The
// lane bits that the output does not want leave for others that it wants: each exchange is one
// interleave of two registers. Nothing here knows a layout.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/kernels/permute.hpp"

namespace mxfp4::kernels {

// The work inside the registers, in this order; steps that are not needed are off.
struct TileNetwork {
  using ByteOrder = std::array<uint8_t, 16>;  // byte i of a block is taken from byte order[i]
  std::optional<ByteOrder> first_order;
  bool first_swap = false;  // nibbles 1 and 2 of every four change places
  std::optional<ByteOrder> second_order;
  int exchanges = 0;  // register bit i, from 0, against the highest byte bit
  bool last_swap = false;
  std::optional<ByteOrder> last_order;
};

// All offsets in bytes. The output of a tile is gathered in its own small buffer, `tile_bytes`
// long, and leaves it as `runs` pieces of `run_bytes`.
struct TilePlan {
  static constexpr int kMaxExchanges = 4;
  static constexpr size_t kRegisterBits = 3;  // a group has at least 8 registers where it can
  static constexpr int64_t kMaxTileBytes = 8192;

  TileNetwork network;
  std::vector<int64_t> load_offset;   // of each register of a group
  std::vector<int64_t> store_offset;  // into the tile's buffer
  int64_t load_block = 0;             // from a register's first block to its second
  int64_t store_block = 0;
  std::vector<int64_t> group_load;  // of each group of registers
  std::vector<int64_t> group_store;
  int64_t tile_bytes = 0;
  int64_t run_bytes = 0;
  std::vector<int64_t> run_offset;   // in the output
  std::vector<int64_t> line_offset;  // in the input: what a tile reads, for prefetching
  LoopNest tiles;                    // walked in this order
};

// The plan for moving units of `unit_bits` (4, 8, 16, 32) as `nest` says; empty when the nest has
// too short runs of power-of-two size on either side, or is a copy of long runs already.
[[nodiscard]] std::optional<TilePlan> tile_plan(const LoopNest& nest, int64_t unit_bits);

}  // namespace mxfp4::kernels
