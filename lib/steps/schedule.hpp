// How a program runs in one direction, as a value: a flat list of operations on a few buffers.
// lower.hpp makes it from steps, run_schedule.hpp runs it. Every choice is made before: the strips
// and their order, the tiles, what is fetched ahead, and what goes past the caches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/core/tensor.hpp"
#include "lib/kernels/permute.hpp"
#include "lib/kernels/tile_plan.hpp"

namespace mxfp4 {

enum class Direction : uint8_t { kForward, kInverse };

// The buffers: one band's part of the input and of the output; the others are scratch.
enum class Place : uint8_t { kInput, kOutput, kStrip, kFirstBetween, kSecondBetween };

struct Address {
  Place place = Place::kInput;
  int64_t offset = 0;  // bytes
};

// Some consecutive entries of a table of the schedule.
struct Range {
  size_t first = 0;
  size_t count = 0;
};

// `count` times: `bytes` bytes are copied, and `fill` bytes of the operation's filling follow them.
// Offsets and steps in bytes, from the operation's addresses.
struct RowMoves {
  int64_t count = 1;
  int64_t from = 0;
  int64_t from_step = 0;
  int64_t to = 0;
  int64_t to_step = 0;
  int64_t bytes = 0;
  int64_t fill = 0;
};

// A permutation for which there are no tiles, unit by unit.
struct UnitLoops {
  kernels::LoopNest nest;
  int64_t unit_bits = 8;
};

// A recoding, in one direction.
struct ElementMap {
  std::string_view name;
  void (*run)(ConstBytes in, MutableBytes out) = nullptr;
};

// A custom step, in one direction.
struct CustomRun {
  std::string_view name;
  std::function<void(ConstBytes in, bool streaming, MutableBytes out)> run;
};

using Kernel = std::variant<kernels::TilePlan, UnitLoops, ElementMap, CustomRun>;

// The bytes that the next strip reads: pieces of `run_bytes` bytes at the offsets Schedule::runs
// from `from`; a negative offset is skipped.
struct Fetch {
  Address from;
  Range runs;
  int64_t run_bytes = 0;
  bool next_band = false;  // of the next band's input, if there is one
};

struct Operation {
  std::optional<size_t> kernel{};  // of Schedule::kernels; none: row moves
  Address from{};
  Address to{};
  int64_t in_bytes = 0;  // what a kernel reads and writes
  int64_t out_bytes = 0;
  Range moves{};           // of Schedule::moves
  std::byte filling{0};    // the value of RowMoves::fill bytes
  bool streaming = false;  // the output goes past the caches
  std::optional<Fetch> next{};
};

struct Schedule {
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  int64_t bands = 1;        // equal parts of input and output, one after another
  int64_t strip_bytes = 0;  // sizes of the scratch buffers
  std::array<int64_t, 2> between_bytes{};
  std::vector<Kernel> kernels;
  std::vector<RowMoves> moves;
  std::vector<int64_t> runs;
  std::vector<Operation> operations;  // of each band

  [[nodiscard]] int64_t scratch_bytes() const {
    return strip_bytes + between_bytes[0] + between_bytes[1];
  }
};

// Bytes of a schedule's tables.
[[nodiscard]] inline int64_t table_bytes(const Schedule& schedule) {
  return static_cast<int64_t>(schedule.moves.capacity() * sizeof(RowMoves) +
                              schedule.runs.capacity() * sizeof(int64_t) +
                              schedule.operations.capacity() * sizeof(Operation));
}

}  // namespace mxfp4
