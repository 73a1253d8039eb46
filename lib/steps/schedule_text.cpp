#include "lib/steps/schedule_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "lib/core/overloaded.hpp"
#include "lib/kernels/tile_shapes.hpp"

namespace mxfp4 {
namespace {

constexpr std::array kPlaces = {"input", "output", "strip", "between 1", "between 2"};

constexpr size_t kFewOffsets = 8;  // no more are listed one by one

const char* name_of(Place place) { return kPlaces.at(static_cast<size_t>(place)); }

// How many entries from the first on are evenly spaced.
size_t even_prefix(std::span<const int64_t> offsets) {
  size_t count = std::min<size_t>(2, offsets.size());
  while (count < offsets.size() && offsets[count] - offsets[count - 1] == offsets[1] - offsets[0]) {
    ++count;
  }
  return count;
}

// Whether blocks of `block` entries repeat the first one at other places.
bool repeats(std::span<const int64_t> offsets, size_t block) {
  if (offsets.size() % block != 0) return false;
  for (size_t i = block; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - i % block] != offsets[i % block] - offsets[0]) return false;
  }
  return true;
}

// FNV-1a.
uint64_t checksum_of(std::span<const int64_t> offsets) {
  uint64_t sum = 0xCBF29CE484222325;
  for (const int64_t offset : offsets) {
    for (int shift = 0; shift < 64; shift += 8) {
      sum = (sum ^ (static_cast<uint64_t>(offset) >> shift & 0xFF)) * 0x100000001B3;
    }
  }
  return sum;
}

std::string order_text(const std::optional<kernels::TileNetwork::ByteOrder>& order) {
  std::string text = "order ";
  for (const uint8_t byte : *order) text += fmt::format("{:x}", byte);
  return text;
}

// The steps inside the registers.
std::string network_text(const kernels::TilePlan& plan) {
  const kernels::TileNetwork& network = plan.network;
  std::vector<std::string> steps;
  if (network.first_order) steps.push_back(order_text(network.first_order));
  if (network.swap) steps.emplace_back("swap nibbles");
  if (network.lead_exchange) steps.emplace_back("exchange bytes 0");
  if (network.nibble_exchange) steps.emplace_back("exchange nibbles 0");
  for (int bit = network.first_exchange; bit < network.exchanges; ++bit) {
    steps.push_back(fmt::format("exchange bytes {}", bit));
  }
  if (network.last_order) steps.push_back(order_text(network.last_order));
  if (plan.block_exchange) steps.push_back(fmt::format("exchange blocks {}", *plan.block_exchange));
  return steps.empty() ? "nothing" : fmt::format("{}", fmt::join(steps, ", "));
}

std::string nest_text(const kernels::LoopNest& nest) {
  std::string text;
  for (size_t axis = 0; axis < nest.size.size(); ++axis) {
    text += fmt::format(" [{} x {} -> {}]", nest.size[axis], nest.in_stride[axis],
                        nest.out_stride[axis]);
  }
  return text.empty() ? " once" : text;
}

std::string stores_text(const kernels::TileStores& stores) {
  return fmt::format("{}, second block +{}, groups {}", offsets_text(stores.offset), stores.block,
                     offsets_text(stores.group));
}

std::string kernel_text(const kernels::TilePlan& plan) {
  std::string text = fmt::format(
      "tiles, {}\n"
      "  registers: {}\n"
      "  load {}, second block +{}, groups {}\n"
      "  store {}\n",
      plan.row ? fmt::format("\"{}\"", kernels::kTileRows[*plan.row].name) : "any shape",
      network_text(plan), offsets_text(plan.load_offset), plan.load_block,
      offsets_text(plan.group_load), stores_text(plan.stores));
  if (plan.staging) {
    text +=
        fmt::format("  staging {}; pieces of {} bytes to {}\n", stores_text(plan.staging->stores),
                    plan.staging->piece_bytes, offsets_text(plan.staging->pieces));
  }
  return text + fmt::format("  walk{}\n", nest_text(plan.tiles));
}

std::string kernel_text(const Kernel& kernel) {
  return std::visit(
      Overloaded{
          [](const kernels::TilePlan& plan) { return kernel_text(plan); },
          [](const UnitLoops& loops) {
            return fmt::format("units of {} bits,{}\n", loops.unit_bits, nest_text(loops.nest));
          },
          [](const ElementMap& map) { return fmt::format("elements, {}\n", map.name); },
          [](const CustomRun& step) { return fmt::format("{}\n", step.name); },
      },
      kernel);
}

// Operations that share a line.
using Operations = std::vector<const Operation*>;

bool alike(const Operation& a, const Operation& b) {
  return a.kernel == b.kernel && a.from.place == b.from.place && a.to.place == b.to.place &&
         a.in_bytes == b.in_bytes && a.out_bytes == b.out_bytes && a.streaming == b.streaming &&
         a.filling == b.filling;
}

std::string addresses_text(const Operations& operations, Address Operation::*side) {
  std::vector<int64_t> offsets;
  for (const Operation* op : operations) offsets.push_back((op->*side).offset);
  const bool only_start = std::ranges::all_of(offsets, [](int64_t at) { return at == 0; });
  const char* place = name_of((operations.front()->*side).place);
  return only_start ? place : fmt::format("{} {}", place, offsets_text(offsets));
}

// Rows of one size.
struct Rows {
  int64_t bytes, fill;
  std::vector<int64_t> from, to;
};

std::vector<Rows> rows_of(const Schedule& schedule, const Operations& operations) {
  std::vector<Rows> sizes;
  for (const Operation* op : operations) {
    const Range range = op->moves;
    for (const RowMoves& m : std::span(schedule.moves).subspan(range.first, range.count)) {
      const auto same = [&](const Rows& r) { return r.bytes == m.bytes && r.fill == m.fill; };
      auto rows = std::ranges::find_if(sizes, same);
      if (rows == sizes.end()) rows = sizes.insert(sizes.end(), Rows{m.bytes, m.fill, {}, {}});
      for (int64_t i = 0; i < m.count; ++i) {
        rows->from.push_back(m.from + i * m.from_step);
        rows->to.push_back(m.to + i * m.to_step);
      }
    }
  }
  return sizes;
}

std::string moves_text(const Schedule& schedule, const Operations& operations,
                       const std::string& indent) {
  std::string text;
  const Operation& op = *operations.front();
  for (const Rows& rows : rows_of(schedule, operations)) {
    const std::string fill = rows.fill == 0 ? ""
                                            : fmt::format(", then {} of {}", rows.fill,
                                                          std::to_integer<int>(op.filling));
    text += fmt::format("{}{} rows of {} bytes{}: {} {} -> {} {}{}\n", indent, rows.to.size(),
                        rows.bytes, fill, name_of(op.from.place), offsets_text(rows.from),
                        name_of(op.to.place), offsets_text(rows.to),
                        op.streaming ? ", past the caches" : "");
  }
  return text;
}

// The bytes fetched ahead, with the runs of the first fetch.
std::string fetches_text(const Schedule& schedule, const Operations& operations) {
  std::vector<int64_t> from;
  const Fetch* first = nullptr;
  bool next_band = false;
  for (const Operation* op : operations) {
    if (!op->next) continue;
    if (first == nullptr) first = &*op->next;
    from.push_back(op->next->from.offset);
    next_band = next_band || op->next->next_band;
  }
  if (first == nullptr) return "";
  const auto runs = std::span(schedule.runs).subspan(first->runs.first, first->runs.count);
  return fmt::format("; fetch {} {} in runs of {} at {}{}", name_of(first->from.place),
                     offsets_text(from), first->run_bytes, offsets_text(runs),
                     next_band ? ", the last in the next band" : "");
}

std::string line_of(const Schedule& schedule, const Operations& operations,
                    const std::string& indent) {
  const Operation& op = *operations.front();
  if (!op.kernel) return moves_text(schedule, operations, indent);
  return fmt::format("{}{} x kernel {}, {} -> {} bytes: {} -> {}{}{}\n", indent, operations.size(),
                     *op.kernel, op.in_bytes, op.out_bytes,
                     addresses_text(operations, &Operation::from),
                     addresses_text(operations, &Operation::to),
                     op.streaming ? ", past the caches" : "", fetches_text(schedule, operations));
}

// How often the `period` operations at `at` come one after another.
size_t rounds_at(const std::vector<Operation>& all, size_t at, size_t period) {
  size_t end = at + period;
  while (end < all.size() && alike(all[end], all[end - period])) ++end;
  return (end - at) / period;
}

}  // namespace

std::string offsets_text(std::span<const int64_t> offsets) {
  if (offsets.empty()) return "nothing";
  if (offsets.size() == 1) return fmt::format("{}", offsets[0]);
  const size_t even = even_prefix(offsets);
  if (repeats(offsets, even)) {
    std::vector<int64_t> starts;
    for (size_t i = 0; i < offsets.size(); i += even) starts.push_back(offsets[i]);
    return fmt::format("{} [{} x {}]", offsets_text(starts), even, offsets[1] - offsets[0]);
  }
  if (offsets.size() <= kFewOffsets) return fmt::format("{{{}}}", fmt::join(offsets, ", "));
  return fmt::format("{} ... ({}, checksum {:016x})", offsets[0], offsets.size(),
                     checksum_of(offsets));
}

std::string schedule_text(const Schedule& schedule) {
  std::string text = fmt::format("{} -> {} bytes", schedule.in_bytes, schedule.out_bytes);
  if (schedule.bands > 1) text += fmt::format(", {} bands", schedule.bands);
  if (schedule.strip_bytes > 0) text += fmt::format(", strip {}", schedule.strip_bytes);
  for (const int64_t bytes : schedule.between_bytes) {
    if (bytes > 0) text += fmt::format(", between {}", bytes);
  }
  text += "\n";
  const std::vector<Operation>& all = schedule.operations;
  for (size_t at = 0; at < all.size();) {
    const bool pairs =
        at + 1 < all.size() && !alike(all[at], all[at + 1]) && rounds_at(all, at, 2) > 1;
    const size_t period = pairs ? 2 : 1;
    const size_t rounds = rounds_at(all, at, period);
    if (pairs) text += fmt::format("  {} rounds of\n", rounds);
    for (size_t i = 0; i < period; ++i) {
      Operations alike_ones;
      for (size_t round = 0; round < rounds; ++round) {
        alike_ones.push_back(&all[at + round * period + i]);
      }
      text += line_of(schedule, alike_ones, pairs ? "    " : "  ");
    }
    at += rounds * period;
  }
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    std::string kernel = fmt::format("  kernel {}: {}", i, kernel_text(schedule.kernels[i]));
    for (size_t end = kernel.find('\n'); end + 1 < kernel.size();
         end = kernel.find('\n', end + 1)) {
      kernel.insert(end + 1, "  ");
    }
    text += kernel;
  }
  return text;
}

}  // namespace mxfp4
