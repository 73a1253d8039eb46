#include "lib/kernels/plan_tiles.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "lib/core/checked.hpp"
#include "lib/kernels/lane_network.hpp"
#include "lib/kernels/permute.hpp"
#include "lib/kernels/tile_shapes.hpp"
#include "lib/kernels/walk.hpp"

namespace mxfp4::kernels {
namespace {

constexpr size_t kLineBits = 7;  // 128 nibbles: one cache line
constexpr size_t kRunBits = 10;  // pieces of 512 bytes are long enough to write
constexpr size_t kTileBits = 14;

// One address bit on both sides, in nibbles.
struct Bit {
  int64_t in = 0;
  int64_t out = 0;
};
using Label = LaneLabel;

struct Loop {
  int64_t size = 0;
  int64_t in = 0;
  int64_t out = 0;
  // The last step goes back so far, over what the step before it has moved already.
  int64_t back_in = 0;
  int64_t back_out = 0;
};

bool goes_back(const Loop& loop) { return loop.back_in > 0; }

struct Axes {
  std::vector<Bit> bits;
  std::vector<Loop> rest;  // of odd size, or with a last step that goes back
};

// Address bits that a loop of odd size becomes when its last step goes back: as many as there can
// be while few units are moved twice.
int bits_going_back(int64_t size) {
  constexpr int64_t kFewest = 6;  // units of which one is moved twice
  int best = 0;
  for (int bits = 1; int64_t{1} << bits < size; ++bits) {
    const int64_t moved = ceil_div(size, int64_t{1} << bits) << bits;
    if ((moved - size) * kFewest <= size) best = bits;
  }
  return best;
}

Axes split_axes(const LoopNest& nest, int64_t unit_nibbles, bool go_back) {
  Axes axes;
  const auto add = [&](int64_t size, int64_t in, int64_t out) {
    for (; size % 2 == 0; size /= 2, in *= 2, out *= 2) axes.bits.push_back({in, out});
    if (size == 1) return;
    const bool whole_bytes = in % 2 == 0 && out % 2 == 0;  // tables hold bytes
    const int bits = go_back && whole_bytes ? bits_going_back(size) : 0;
    for (int i = 0; i < bits; ++i) axes.bits.push_back({in << i, out << i});
    const int64_t steps = ceil_div(size, int64_t{1} << bits);
    const int64_t back = (steps << bits) - size;
    axes.rest.push_back({steps, in << bits, out << bits, back * in, back * out});
  };
  for (size_t axis = 0; axis < nest.size.size(); ++axis) {
    add(nest.size[axis], nest.in_stride[axis] * unit_nibbles, nest.out_stride[axis] * unit_nibbles);
  }
  if (unit_nibbles > 1) add(unit_nibbles, 1, 1);
  return axes;
}

// Takes bits out of a pool and gives them labels.
class TileBits {
 public:
  explicit TileBits(std::vector<Bit> pool) : pool_(std::move(pool)) {}

  // The bit whose `side` stride is `stride`, moved into the tile if it is not there yet.
  std::optional<Label> take(int64_t Bit::*side, int64_t stride) {
    const auto has = [&](const Bit& bit) { return bit.*side == stride; };
    const auto known = std::ranges::find_if(bits, has);
    if (known != bits.end()) return static_cast<Label>(known - bits.begin());
    const auto found = std::ranges::find_if(pool_, has);
    if (found == pool_.end()) return std::nullopt;
    bits.push_back(*found);
    pool_.erase(found);
    return bits.size() - 1;
  }

  // Labels of the bits with strides 1, 2, 4 ... as far as they go and the tile may grow.
  std::vector<Label> chain(int64_t Bit::*side, size_t longest) {
    std::vector<Label> labels;
    while (labels.size() < longest && bits.size() < kTileBits) {
      const auto label = take(side, int64_t{1} << labels.size());
      if (!label) break;
      labels.push_back(*label);
    }
    return labels;
  }

  // Takes the lowest of the bits that are left.
  void take_any() {
    const auto lowest = std::ranges::min_element(pool_, {}, &Bit::in);
    if (lowest != pool_.end()) (void)take(&Bit::in, lowest->in);
  }

  [[nodiscard]] const std::vector<Bit>& pool() const { return pool_; }

  std::vector<Bit> bits;

 private:
  std::vector<Bit> pool_;
};

// The loops around the tiles, in input order: a strip's rows are read as they lie.
LoopNest tile_loops(std::vector<Loop> loops) {
  std::ranges::sort(loops, std::greater(), &Loop::in);
  LoopNest nest;
  for (const Loop& loop : loops) add_loop(nest, loop.size, loop.in / 2, loop.out / 2);
  return nest;
}

// The bits of a tile that a group of registers holds, and their places when they are loaded and
// when they are stored.
struct Group {
  std::vector<Label> before;  // register bits
  std::vector<Label> after;
  Label block = 0;  // 1 in a register's second block, 0 in its first
  Label stored_block = 0;
  std::optional<int> block_exchange;
  std::vector<Label> others;  // the bits of the group's number
};

std::optional<Label> with_out_bit(const std::vector<Bit>& bits, size_t bit) {
  const auto has = [&](const Bit& b) { return b.out == int64_t{1} << bit; };
  const auto found = std::ranges::find_if(bits, has);
  if (found == bits.end()) return std::nullopt;
  return static_cast<Label>(found - bits.begin());
}

// Lets output bit 5 be the two blocks of a register, so that a stored register is half a
// line. Empty when no bit is left for the second block of a register.
std::optional<Group> make_group(const std::vector<Bit>& bits, const TileLanes& from,
                                const LaneNetwork& network) {
  Group group = {network.entering, network.exiting, 0, 0, {}, {}};
  std::vector<Label>& others = group.others;
  for (Label label = 0; label < bits.size(); ++label) {
    if (!contains(from, label) && !contains(group.before, label)) others.push_back(label);
  }
  if (others.empty()) return std::nullopt;
  std::ranges::sort(others, {}, [&](Label label) { return bits[label].out; });

  const std::optional<Label> half_line = with_out_bit(bits, kLaneBits);
  group.block = others.front();  // bit 5, if it is left
  if (half_line && contains(group.after, *half_line)) {
    group.block_exchange =
        static_cast<int>(std::ranges::find(group.after, *half_line) - group.after.begin());
    // Neighbours on the input side are one load.
    group.block = *std::ranges::min_element(others, {}, [&](Label l) { return bits[l].in; });
  }
  std::erase(others, group.block);

  // All registers or the fewest: the runner has code only for these two numbers.
  if (group.before.size() + others.size() >= TilePlan::kRegisterBits) {
    while (group.before.size() < TilePlan::kRegisterBits) {
      group.before.push_back(others.front());
      group.after.push_back(others.front());
      others.erase(others.begin());
    }
  }
  group.stored_block = group.block;
  if (group.block_exchange) {
    std::swap(group.after[static_cast<size_t>(*group.block_exchange)], group.stored_block);
  }
  return group;
}

// How a tile lies in the staging buffer.
struct Staging {
  std::vector<Loop> taken;   // into the tile
  std::vector<Loop> around;  // the others
  int64_t piece = 1;         // nibbles
};

// Takes loops into the tile until its output is pieces of whole lines. Empty if no loops make
// it so.
std::optional<Staging> make_staging(const std::vector<Bit>& bits, std::vector<Loop> around) {
  constexpr int64_t kLine = int64_t{1} << kLineBits;
  constexpr int64_t kRun = int64_t{1} << kRunBits;
  Staging staging = {{}, std::move(around), 1};
  int64_t& piece = staging.piece;
  int64_t tile = int64_t{1} << bits.size();
  while (true) {
    if (std::ranges::find(bits, piece, &Bit::out) != bits.end()) {
      piece *= 2;
      continue;
    }
    if (piece % kLine == 0 && piece >= kRun) break;
    const auto longer = std::ranges::find(staging.around, piece, &Loop::out);
    if (longer == staging.around.end() || longer->size > 2 * TilePlan::kStagingBytes / tile) break;
    tile *= longer->size;
    piece *= longer->size;
    staging.taken.push_back(*longer);
    staging.around.erase(longer);
  }
  const auto whole = [&](const auto& loop) { return loop.out < piece || loop.out % kLine == 0; };
  if (piece % kLine != 0 || !std::ranges::all_of(bits, whole) ||
      !std::ranges::all_of(staging.around, whole)) {
    return std::nullopt;
  }
  return staging;
}

// A bit or a loop of a tile, strides in nibbles.
struct TileAxis {
  int64_t size = 2;
  int64_t in = 0;
  int64_t out = 0;
  int64_t staged = 0;
  int64_t back_in = 0;
  int64_t back_out = 0;

  // How far the last step goes back on a side.
  [[nodiscard]] int64_t back(int64_t TileAxis::*side) const {
    if (side == &TileAxis::in) return back_in;
    return side == &TileAxis::out ? back_out : 0;
  }
};

// The bits, numbered as their labels, then the loops.
std::vector<TileAxis> tile_axes(const std::vector<Bit>& bits, const std::vector<Loop>& taken) {
  std::vector<TileAxis> axes;
  axes.reserve(bits.size() + taken.size());
  for (const Bit& bit : bits) axes.push_back({2, bit.in, bit.out});
  for (const Loop& loop : taken) {
    axes.push_back({loop.size, loop.in, loop.out, 0, loop.back_in, loop.back_out});
  }
  std::vector<TileAxis*> by_out;
  by_out.reserve(axes.size());
  for (TileAxis& axis : axes) by_out.push_back(&axis);
  std::ranges::sort(by_out, {}, [](const TileAxis* axis) { return axis->out; });
  int64_t stride = 1;
  for (TileAxis* axis : by_out) {
    axis->staged = stride;
    stride *= axis->size;
  }
  return axes;
}

// All positions, in bytes, that steps along the axes reach; the first axis varies fastest.
std::vector<int64_t> positions(const std::vector<TileAxis>& axes, const std::vector<Label>& labels,
                               int64_t TileAxis::*side) {
  std::vector<int64_t> positions = {0};
  for (Label label : labels) {
    const size_t count = positions.size();
    const TileAxis& axis = axes[label];
    for (int64_t step = 1; step < axis.size; ++step) {
      const int64_t at = step * (axis.*side) - (step + 1 == axis.size ? axis.back(side) : 0);
      for (size_t i = 0; i < count; ++i) positions.push_back(positions[i] + at / 2);
    }
  }
  return positions;
}

void fill_tables(const std::vector<TileAxis>& axes, const Group& group, TilePlan& plan) {
  const auto stores = [&](int64_t TileAxis::*side) {
    return TileStores{positions(axes, group.after, side), axes[group.stored_block].*side / 2,
                      positions(axes, group.others, side)};
  };
  plan.load_offset = positions(axes, group.before, &TileAxis::in);
  plan.load_block = axes[group.block].in / 2;
  plan.group_load = positions(axes, group.others, &TileAxis::in);
  plan.block_exchange = group.block_exchange;
  plan.stores = stores(&TileAxis::out);
  if (plan.staging) plan.staging->stores = stores(&TileAxis::staged);
}

void fill_pieces(const std::vector<TileAxis>& axes, int64_t piece, TileStaging& staging) {
  std::vector<Label> far;
  for (Label label = 0; label < axes.size(); ++label) {
    if (axes[label].out >= piece) far.push_back(label);
  }
  std::ranges::sort(far, {}, [&](Label label) { return axes[label].out; });
  staging.piece_bytes = piece / 2;
  staging.pieces = positions(axes, far, &TileAxis::out);
}

// Loops that go back are taken into the tile, whose tables hold each of their steps, and its output
// is not staged.
std::optional<TilePlan> plan_for(const Axes& axes, const LoopNest& nest, int64_t unit_bits) {
  TileBits tile(axes.bits);
  const std::vector<Label> in_chain = tile.chain(&Bit::in, kLineBits);
  const std::vector<Label> out_chain = tile.chain(&Bit::out, kLineBits);
  if (in_chain.size() < kLaneBits || out_chain.size() < kLaneBits) return std::nullopt;
  if (in_chain == out_chain && in_chain.size() == kLineBits) return std::nullopt;
  TileLanes from;
  TileLanes to;
  std::copy_n(in_chain.begin(), kLaneBits, from.begin());
  std::copy_n(out_chain.begin(), kLaneBits, to.begin());
  const std::optional<LaneNetwork> network = LaneNetwork::make(from, to);
  if (!network) return std::nullopt;
  if (out_chain.size() == kLineBits) (void)tile.chain(&Bit::out, kRunBits);

  // Axes with few factors of two give a small tile: other bits fill the registers of a group.
  const size_t wanted = kLaneBits + 1 + std::max(network->entering.size(), TilePlan::kRegisterBits);
  for (size_t i = tile.bits.size(); i < wanted; ++i) tile.take_any();

  TilePlan plan;
  plan.network = network->steps;
  std::optional<Group> group = make_group(tile.bits, from, *network);
  if (!group) return std::nullopt;
  std::vector<Loop> around = axes.rest;
  for (const Bit& bit : tile.pool()) around.push_back({2, bit.in, bit.out});
  std::vector<Loop> taken;
  std::ranges::copy_if(around, std::back_inserter(taken), goes_back);
  std::erase_if(around, goes_back);
  const std::optional<Staging> staging =
      taken.empty() ? make_staging(tile.bits, around) : std::nullopt;
  if (staging) plan.staging.emplace();
  const auto all = tile_axes(tile.bits, staging ? staging->taken : taken);
  for (Label label = tile.bits.size(); label < all.size(); ++label) group->others.push_back(label);
  // Groups in input order: a line that two of them take in parts is still near.
  std::ranges::sort(group->others, {}, [&](Label label) { return all[label].in; });
  fill_tables(all, *group, plan);
  if (staging) {
    fill_pieces(all, staging->piece, *plan.staging);
    around = staging->around;
  }
  plan.tiles = tile_loops(std::move(around));
  if (plan.tiles.size.size() > kMaxAxes) return std::nullopt;
  plan.row = tile_row(shape_of(plan));
  plan.units = nest;
  plan.unit_bits = unit_bits;
  return plan;
}

}  // namespace

std::optional<TilePlan> tile_plan(const LoopNest& nest, int64_t unit_bits) {
  const Axes axes = split_axes(nest, unit_bits / 4, false);
  if (std::optional<TilePlan> plan = plan_for(axes, nest, unit_bits)) return plan;
  if (axes.rest.empty()) return std::nullopt;
  return plan_for(split_axes(nest, unit_bits / 4, true), nest, unit_bits);
}

}  // namespace mxfp4::kernels
