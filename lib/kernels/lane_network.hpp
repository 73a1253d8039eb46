// Puts together the work inside a tile's registers: which steps bring the bits that the output
// wants into the lanes of a 16-byte block, and which others leave.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

constexpr size_t kLaneBits = 5;  // 32 nibbles: one 16-byte block

using LaneLabel = size_t;  // of a bit of the tile
// By position: 0 is the nibble, 1 to 4 number the byte.
using TileLanes = std::array<LaneLabel, kLaneBits>;

[[nodiscard]] inline bool contains(std::span<const LaneLabel> labels, LaneLabel label) {
  return std::ranges::find(labels, label) != labels.end();
}

// Tracks which bit lies in which lane position while the network is put together.
class LaneNetwork {
 public:
  // Empty when it would need more exchanges than there are registers.
  [[nodiscard]] static std::optional<LaneNetwork> make(const TileLanes& from, const TileLanes& to);

  TileNetwork steps;
  std::vector<LaneLabel> entering;  // of register bit i, before the exchanges
  std::vector<LaneLabel> exiting;   // of register bit i, after them

 private:
  explicit LaneNetwork(const TileLanes& from) : lanes_(from) {}

  bool build(const TileLanes& to);
  // Puts byte bits that leave at the top, the first of them highest; for a swap, beside the nibble.
  void arrange(const TileLanes& to);
  void exchange(size_t bit);
  // The byte order that brings the lanes into the order `wanted`; position 0 stays.
  std::optional<TileNetwork::ByteOrder> reorder(const TileLanes& wanted);

  TileLanes lanes_;
};

}  // namespace mxfp4::kernels
