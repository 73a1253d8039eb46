#include "lib/kernels/tile_plan.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "lib/kernels/walk.hpp"

namespace mxfp4::kernels {
namespace {

constexpr size_t kLaneBits = 5;  // 32 nibbles: one 16-byte block
constexpr size_t kLineBits = 7;  // 128 nibbles: one cache line
constexpr size_t kRunBits = 10;  // pieces of 512 bytes are long enough to write
constexpr size_t kTileBits = 14;
static_assert((int64_t{1} << kTileBits) / 2 <= TilePlan::kMaxTileBytes);

// One address bit on both sides, in nibbles.
struct Bit {
  int64_t in = 0;
  int64_t out = 0;
};
using Label = size_t;  // of a bit of the tile
using Lanes = std::array<Label, kLaneBits>;

struct Axes {
  std::vector<Bit> bits;
  LoopNest rest;  // loops of odd size
};

Axes split_axes(const LoopNest& nest, int64_t unit_nibbles) {
  Axes axes;
  const auto add = [&](int64_t size, int64_t in, int64_t out) {
    for (; size % 2 == 0; size /= 2, in *= 2, out *= 2) axes.bits.push_back({in, out});
    if (size == 1) return;
    axes.rest.size.push_back(size);
    axes.rest.in_stride.push_back(in);
    axes.rest.out_stride.push_back(out);
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

  [[nodiscard]] const std::vector<Bit>& pool() const { return pool_; }

  std::vector<Bit> bits;

 private:
  std::vector<Bit> pool_;
};

bool contains(std::span<const Label> labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

// Tracks which bit lies in which lane position while the network is put together. Position 0 is the
// nibble, 1 to 4 number the byte.
class Network {
 public:
  // Empty when the network would need more exchanges than there are registers, or every byte bit
  // has to leave together with the nibble bit.
  static std::optional<Network> make(const Lanes& from, const Lanes& to) {
    Network made(from);
    for (Label label : to) {
      if (!contains(from, label)) made.entering.push_back(label);
    }
    for (Label label : from) {
      if (!contains(to, label)) made.exiting.push_back(label);
    }
    if (made.entering.size() > TilePlan::kMaxExchanges || !made.build(to)) return std::nullopt;
    return made;
  }

  TileNetwork steps;
  std::vector<Label> entering;  // of register bit i, before
  std::vector<Label> exiting;   // of register bit i, after

 private:
  explicit Network(const Lanes& from) : lanes_(from) {}

  bool build(const Lanes& to) {
    const bool nibble_is_inside = contains({lanes_.data() + 1, kLaneBits - 1}, to[0]);
    if (nibble_is_inside || contains(exiting, lanes_[0])) {
      Lanes wanted = lanes_;
      const auto chosen = nibble_is_inside
                              ? std::ranges::find(wanted, to[0])
                              : std::find_if(wanted.begin() + 1, wanted.end(),
                                             [&](Label l) { return !contains(exiting, l); });
      if (chosen == wanted.end()) return false;
      std::iter_swap(chosen, wanted.begin() + 1);
      steps.first_order = reorder(wanted);
      steps.first_swap = swap();
    }
    put_exits_on_top(steps.first_swap ? steps.second_order : steps.first_order);
    // What enters last comes to position 1, next to the nibble.
    const auto nibble = std::ranges::find(entering, to[0]);
    if (nibble != entering.end()) std::iter_swap(nibble, entering.end() - 1);
    exiting.clear();
    for (Label label : entering) {
      exiting.push_back(lanes_[kLaneBits - 1]);
      std::shift_right(lanes_.begin() + 1, lanes_.end(), 1);
      lanes_[1] = label;
    }
    steps.exchanges = static_cast<int>(entering.size());
    if (lanes_[0] != to[0]) steps.last_swap = swap();
    steps.last_order = reorder(to);
    return lanes_ == to;
  }

  void put_exits_on_top(std::optional<TileNetwork::ByteOrder>& order) {
    Lanes wanted = lanes_;
    std::stable_partition(wanted.begin() + 1, wanted.end(),
                          [&](Label label) { return !contains(exiting, label); });
    order = reorder(wanted);
  }

  bool swap() {
    std::swap(lanes_[0], lanes_[1]);
    return true;
  }

  // The byte order that brings the lanes into the order `wanted`; position 0 stays.
  std::optional<TileNetwork::ByteOrder> reorder(const Lanes& wanted) {
    if (wanted == lanes_) return std::nullopt;
    TileNetwork::ByteOrder order{};
    for (size_t to = 1; to < kLaneBits; ++to) {
      const auto from = static_cast<size_t>(std::ranges::find(lanes_, wanted[to]) - lanes_.begin());
      for (size_t byte = 0; byte < order.size(); ++byte) {
        if ((byte >> (to - 1) & 1) != 0) order[byte] |= static_cast<uint8_t>(1U << (from - 1));
      }
    }
    lanes_ = wanted;
    return order;
  }

  Lanes lanes_;
};

// All sums of subsets of `strides`, the first varying fastest.
std::vector<int64_t> subset_sums(const std::vector<int64_t>& strides) {
  std::vector<int64_t> sums = {0};
  for (int64_t stride : strides) {
    const size_t count = sums.size();
    for (size_t i = 0; i < count; ++i) sums.push_back(sums[i] + stride);
  }
  return sums;
}

// The loops around the tiles, in input order: a strip's rows are read as they lie.
LoopNest tile_loops(const LoopNest& rest, const std::vector<Bit>& pool) {
  struct Loop {
    int64_t size, in, out;
  };
  std::vector<Loop> loops;
  for (size_t i = 0; i < rest.size.size(); ++i) {
    loops.push_back({rest.size[i], rest.in_stride[i], rest.out_stride[i]});
  }
  for (const Bit& bit : pool) loops.push_back({2, bit.in, bit.out});
  std::ranges::sort(loops, std::greater(), &Loop::in);
  LoopNest nest;
  for (const Loop& loop : loops) add_loop(nest, loop.size, loop.in / 2, loop.out / 2);
  return nest;
}

// Fills in the tables once the tile's bits and its network are known. False when no bit is left for
// the second block of a register.
bool fill_tables(const std::vector<Bit>& bits, const Lanes& from, const Network& network,
                 TilePlan& plan) {
  std::vector<Label> by_output(bits.size());
  for (Label label = 0; label < bits.size(); ++label) by_output[label] = label;
  std::ranges::sort(by_output, {}, [&](Label label) { return bits[label].out; });
  std::vector<int64_t> stored(bits.size());  // a bit's place in the tile's buffer, in bytes
  for (size_t i = 1; i < by_output.size(); ++i) stored[by_output[i]] = int64_t{1} << (i - 1);

  size_t run_bits = 0;
  while (run_bits < bits.size() && bits[by_output[run_bits]].out == int64_t{1} << run_bits) {
    ++run_bits;
  }
  plan.tile_bytes = int64_t{1} << (bits.size() - 1);
  plan.run_bytes = int64_t{1} << (run_bits - 1);
  std::vector<int64_t> strides;
  for (size_t i = run_bits; i < by_output.size(); ++i)
    strides.push_back(bits[by_output[i]].out / 2);
  plan.run_offset = subset_sums(strides);

  std::vector<Label> others;
  std::vector<int64_t> lines;
  for (Label label = 0; label < bits.size(); ++label) {
    if (bits[label].in >= int64_t{1} << kLineBits) lines.push_back(bits[label].in / 2);
    if (!contains(from, label) && !contains(network.entering, label)) others.push_back(label);
  }
  plan.line_offset = subset_sums(lines);
  if (others.empty()) return false;
  // Whole registers are stored where that is possible: the tile's buffer is read again at once.
  std::ranges::sort(others, {}, [&](Label label) { return stored[label]; });
  plan.load_block = bits[others.front()].in / 2;
  plan.store_block = stored[others.front()];
  others.erase(others.begin());

  std::vector<Label> before = network.entering;
  std::vector<Label> after = network.exiting;
  const size_t more = TilePlan::kRegisterBits - std::min(TilePlan::kRegisterBits, before.size());
  if (others.size() >= more) {
    for (std::vector<Label>* labels : {&before, &after}) {
      labels->insert(labels->end(), others.begin(), others.begin() + static_cast<ptrdiff_t>(more));
    }
    others.erase(others.begin(), others.begin() + static_cast<ptrdiff_t>(more));
  }
  const auto sums = [](const std::vector<Label>& labels, auto stride) {
    std::vector<int64_t> each(labels.size());
    std::ranges::transform(labels, each.begin(), stride);
    return subset_sums(each);
  };
  const auto in_bytes = [&](Label label) { return bits[label].in / 2; };
  const auto stored_bytes = [&](Label label) { return stored[label]; };
  plan.load_offset = sums(before, in_bytes);
  plan.store_offset = sums(after, stored_bytes);
  plan.group_load = sums(others, in_bytes);
  plan.group_store = sums(others, stored_bytes);
  return true;
}

}  // namespace

std::optional<TilePlan> tile_plan(const LoopNest& nest, int64_t unit_bits) {
  const Axes axes = split_axes(nest, unit_bits / 4);
  TileBits tile(axes.bits);
  const std::vector<Label> in_chain = tile.chain(&Bit::in, kLineBits);
  const std::vector<Label> out_chain = tile.chain(&Bit::out, kLineBits);
  if (in_chain.size() < kLaneBits || out_chain.size() < kLaneBits) return std::nullopt;
  if (in_chain == out_chain && in_chain.size() == kLineBits) return std::nullopt;
  Lanes from;
  Lanes to;
  std::copy_n(in_chain.begin(), kLaneBits, from.begin());
  std::copy_n(out_chain.begin(), kLaneBits, to.begin());
  const std::optional<Network> network = Network::make(from, to);
  if (!network) return std::nullopt;
  if (out_chain.size() == kLineBits) (void)tile.chain(&Bit::out, kRunBits);

  TilePlan plan;
  plan.network = network->steps;
  if (!fill_tables(tile.bits, from, *network, plan)) return std::nullopt;
  plan.tiles = tile_loops(axes.rest, tile.pool());
  if (plan.tiles.size.size() > kMaxAxes) return std::nullopt;
  return plan;
}

}  // namespace mxfp4::kernels
