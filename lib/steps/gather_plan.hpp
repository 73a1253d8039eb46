// A program as one gather: for each nibble of the output, where in the input it comes from, what fills
// it, and which element map it goes through. It is a list of 32-bit words that one kernel reads
// (lib/kernels/gather_source.h), on a GPU or, in tests, on this machine. No layout has code of its own in it.
//
//   head       GatherHead's words
//   chains     the operations from the output back to the element map (outer), and from there, or from
//              the output where there is no map, back to the input (inner). All sizes in nibbles:
//                kGatherDigits n, n times (extent, magic, stride), innermost first
//                kGatherRows   row, magic, count, byte of the filling, input row, columns, first column
//                              there, the source row of each output row or 0xFFFFFFFF
//                kGatherEnd
//              The inner one begins with a span: log2 of its nibbles, their 8 places from its first one
//              on, and the digits, as above, of its number.
//   items      the quick way, where there is one: what a thread makes at once, in an order in which
//              threads that are neighbours read and write what lies together. n, n times (extent, magic,
//              stride in the input, stride in words of the output)
//   map        the value of each element of one or two bytes; or, of 32 bits, how far to the left, round,
//              which bits go
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/core/tensor.hpp"
#include "lib/steps/program.hpp"

namespace mxfp4 {

using GatherPlan = std::vector<uint32_t>;

// Bytes of a granule before and behind the pass.
[[nodiscard]] int64_t raw_bytes(const GatherPlan& plan);
[[nodiscard]] int64_t made_bytes(const GatherPlan& plan);

// The input of a program as rows of a larger matrix: a rank's slice of stored experts.
struct TakenRows {
  static constexpr int64_t kFilled = -1;
  int64_t stored_rows = 0;
  int64_t stored_row_bytes = 0;
  int64_t first = 0;              // byte of a stored row
  int64_t columns = 0;            // bytes from there on
  int64_t row_bytes = 0;          // `fill` behind the columns
  std::vector<int64_t> source{};  // the stored row of each row, or kFilled
  std::byte fill{0};
};

// With `taken` the plan begins with the stored matrix. Nothing where the program cannot be said so:
// a custom step that does not say what it is, more than one element map, an element of 32 bits that
// is rounded, 2 GiB or more; nor where `taken` does not lie in its matrix.
[[nodiscard]] std::optional<GatherPlan> gather_plan(const Program& program,
                                                    const TakenRows* taken = nullptr);

// Whether a kernel that runs the plan stays inside of its words, and ends. That it reads `in_bytes`
// and writes `out_bytes` at most, whatever the words say, the kernel sees to. What gather_plan()
// makes is sound.
[[nodiscard]] bool is_sound(std::span<const uint32_t> plan, int64_t in_bytes, int64_t out_bytes);

// Bytes of an item of the quick way, whose place is found once for several granules; else 0.
[[nodiscard]] int64_t quick_bytes(const GatherPlan& plan);

}  // namespace mxfp4
