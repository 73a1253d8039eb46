#include "lib/kernels/tile_plan.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "lib/kernels/walk.hpp"

namespace mxfp4::kernels {
namespace {

constexpr size_t kLaneBits = 5;  // 32 nibbles: one 16-byte block
constexpr size_t kLineBits = 7;  // 128 nibbles: one cache line
constexpr int64_t kLineBytes = 64;
constexpr size_t kRunBits = 10;  // pieces of 512 bytes are long enough to write
constexpr size_t kTileBits = 14;

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

bool contains(std::span<const Label> labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

// Tracks which bit lies in which lane position while the network is put together. Position 0 is the
// nibble, 1 to 4 number the byte.
class Network {
 public:
  // Empty when it would need more exchanges than there are registers.
  static std::optional<Network> make(const Lanes& from, const Lanes& to) {
    Network made(from);
    for (Label label : to) {
      if (!contains(from, label)) made.entering.push_back(label);
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
    // The wanted nibble comes from register bit 0, or through it from among the bytes: both cost
    // less than a swap inside a register.
    const auto entering_nibble = std::ranges::find(entering, to[0]);
    if (entering_nibble != entering.end()) {
      std::iter_swap(entering.begin(), entering_nibble);
    } else if (lanes_[0] != to[0]) {
      steps.lead_exchange = !entering.empty();
      steps.swap = entering.empty();
    }
    exiting = entering;
    arrange(to);
    if (steps.swap) std::swap(lanes_[0], lanes_[1]);
    if (steps.lead_exchange) exchange(0);
    if (lanes_[0] != to[0]) {
      steps.nibble_exchange = true;
      std::swap(lanes_[0], exiting.front());
    }
    steps.exchanges = static_cast<int>(exiting.size());
    steps.first_exchange = !exiting.empty() && !contains(to, exiting.front()) ? 1 : 0;
    for (size_t bit = static_cast<size_t>(steps.first_exchange); bit < exiting.size(); ++bit) {
      exchange(bit);
    }
    steps.last_order = reorder(to);
    return lanes_ == to;
  }

  // Byte bits that leave come to the top, the first of them highest; for a swap, beside the nibble.
  void arrange(const Lanes& to) {
    Lanes wanted = lanes_;
    const auto rank = [&](Label label) {
      if (label == to[0]) return steps.swap ? 0 : 3;
      return contains(to, label) ? 1 : 2;
    };
    std::ranges::stable_sort(wanted.begin() + 1, wanted.end(), {}, rank);
    steps.first_order = reorder(wanted);
  }

  void exchange(size_t bit) {
    const Label leaves = lanes_[kLaneBits - 1];
    std::shift_right(lanes_.begin() + 1, lanes_.end(), 1);
    lanes_[1] = std::exchange(exiting[bit], leaves);
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

// Which bits of a tile a group of registers holds, and where: as they are loaded and as they are
// stored.
struct Group {
  std::vector<Label> before;  // register bits
  std::vector<Label> after;
  Label block = 0;  // tells a register's second block from its first
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

// Output bits 5 and 6 complete a line: the first belongs into the block, the second into a
// register. Empty when no bit is left for the second block of a register.
std::optional<Group> make_group(const std::vector<Bit>& bits, const Lanes& from,
                                const Network& network) {
  Group group = {network.entering, network.exiting, 0, 0, {}, {}};
  std::vector<Label>& others = group.others;
  for (Label label = 0; label < bits.size(); ++label) {
    if (!contains(from, label) && !contains(group.before, label)) others.push_back(label);
  }
  if (others.empty()) return std::nullopt;
  std::ranges::sort(others, {}, [&](Label label) { return bits[label].out; });

  const std::optional<Label> half_line = with_out_bit(bits, kLaneBits);
  const std::optional<Label> line = with_out_bit(bits, kLaneBits + 1);
  const bool line_is_left = line && contains(others, *line);
  group.block = others.front();  // bit 5, if it is left
  if (half_line && contains(group.after, *half_line)) {
    group.block_exchange =
        static_cast<int>(std::ranges::find(group.after, *half_line) - group.after.begin());
    // Neighbours on the input side are one load.
    group.block = *std::ranges::min_element(others, {}, [&](Label l) { return bits[l].in; });
    if (line_is_left && group.before.size() >= TilePlan::kRegisterBits) group.block = *line;
  }
  std::erase(others, group.block);

  const auto add = [&](Label label) {
    group.before.push_back(label);
    group.after.push_back(label);
    std::erase(others, label);
  };
  // All or none: the runner knows full groups and the least.
  if (group.before.size() + others.size() >= TilePlan::kRegisterBits) {
    if (line && contains(others, *line) && group.before.size() < TilePlan::kMaxRegisterBits) {
      add(*line);
    }
    while (group.before.size() < TilePlan::kRegisterBits) add(others.front());
    // Two lines side by side: where rows of the output lie a multiple of 2 KiB apart, each change
    // from one to the next costs (tests/bench/README.md). Fewer exchanges run on 8 registers only.
    const std::optional<Label> next_line = with_out_bit(bits, kLineBits);
    if (next_line && contains(others, *next_line) &&
        network.steps.exchanges >= static_cast<int>(TilePlan::kRegisterBits) &&
        group.before.size() < TilePlan::kMaxRegisterBits) {
      add(*next_line);
    }
  }
  group.stored_block = group.block;
  if (group.block_exchange) {
    std::swap(group.after[static_cast<size_t>(*group.block_exchange)], group.stored_block);
  }
  return group;
}

// The register bit that tells the second half of an output line, when all lines of the output lie
// in one group each and begin at whole lines.
std::optional<int> line_bit(const std::vector<Bit>& bits, const Group& group) {
  const std::optional<Label> half_line = with_out_bit(bits, kLaneBits);
  const std::optional<Label> line = with_out_bit(bits, kLaneBits + 1);
  if (!half_line || !line || group.stored_block != *half_line) return std::nullopt;
  const auto at = std::ranges::find(group.after, *line);
  if (at == group.after.end()) return std::nullopt;
  const auto whole = [&](Label label) {
    return label == *line || bits[label].out % (int64_t{1} << kLineBits) == 0;
  };
  if (!std::ranges::all_of(group.after, whole) || !std::ranges::all_of(group.others, whole)) {
    return std::nullopt;
  }
  return static_cast<int>(at - group.after.begin());
}

void fill_tables(const std::vector<Bit>& bits, const Group& group, TilePlan& plan) {
  const auto sums = [&](const std::vector<Label>& labels, int64_t Bit::*side) {
    std::vector<int64_t> strides(labels.size());
    const auto bytes = [&](Label label) { return bits[label].*side / 2; };
    std::ranges::transform(labels, strides.begin(), bytes);
    return subset_sums(strides);
  };
  plan.load_offset = sums(group.before, &Bit::in);
  plan.store_offset = sums(group.after, &Bit::out);
  plan.load_block = bits[group.block].in / 2;
  plan.store_block = bits[group.stored_block].out / 2;
  plan.block_exchange = group.block_exchange;
  plan.group_load = sums(group.others, &Bit::in);
  plan.group_store = sums(group.others, &Bit::out);
  plan.line_bit = line_bit(bits, group);
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

  // Axes of few powers of two: at least the second block of a register is wanted.
  const size_t wanted = kLaneBits + 1 + std::max(network->entering.size(), TilePlan::kRegisterBits);
  for (size_t i = tile.bits.size(); i < wanted; ++i) tile.take_any();

  TilePlan plan;
  plan.network = network->steps;
  const std::optional<Group> group = make_group(tile.bits, from, *network);
  if (!group) return std::nullopt;
  fill_tables(tile.bits, *group, plan);
  plan.tiles = tile_loops(axes.rest, tile.pool());
  if (plan.tiles.size.size() > kMaxAxes) return std::nullopt;
  const auto whole_lines = [](int64_t bytes) { return bytes % kLineBytes == 0; };
  if (!std::ranges::all_of(plan.tiles.out_stride, whole_lines)) plan.line_bit.reset();
  return plan;
}

}  // namespace mxfp4::kernels
