// A program as one gather: for each nibble of the output, where in the input it comes from, what fills
// it, and which element map it goes through. It is a list of 32-bit words that one kernel reads
// (lib/kernels/gather_source.h), on a GPU or, for tests, here. No layout has code of its own in it.
//
//   head       GatherHead's words
//   chains     the operations from the output back to the element map (outer), and from there, or from
//              the output where there is no map, back to the input (inner). All sizes in nibbles:
//                kGatherDigits n, n times (extent, magic, stride), innermost first
//                kGatherRows   row, magic, count, the source row of each output row
//                kGatherPad    output row, magic, input row, input rows, byte of the filling
//                kGatherEnd
//              The inner one begins with a span: log2 of its nibbles, their 8 places from its first one
//              on, and the digits, as above, of its number.
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

// Nothing where the program cannot be said so: a custom step that does not say what it is, more
// than one element map, an element of 32 bits that is rounded, 2 GiB or more.
[[nodiscard]] std::optional<GatherPlan> gather_plan(const Program& program);

// Whether a kernel that runs the plan stays inside of its words, and ends. That it reads `in_bytes`
// and writes `out_bytes` at most, whatever the words say, the kernel sees to. What gather_plan()
// makes is sound.
[[nodiscard]] bool is_sound(std::span<const uint32_t> plan, int64_t in_bytes, int64_t out_bytes);

// The kernel on this machine. Requires is_sound().
void run_gather_plan(std::span<const uint32_t> plan, ConstBytes in, MutableBytes out);

}  // namespace mxfp4
