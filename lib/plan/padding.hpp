// Where the padding of an output lies, so that the writer need not look for it.
//
// Layouts move the bits of codes and compute nothing (outputs with a combination aside), so a byte
// is padding when it is zero although every code has all its bits set. The program itself gives the
// answer, so it holds for every layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/load/slice.hpp"

namespace mxfp4 {

struct Output;

// Consecutive bytes that are zero whatever the weights are.
struct PaddingRun {
  int64_t begin = 0;
  int64_t bytes = 0;
  friend bool operator==(const PaddingRun&, const PaddingRun&) = default;
};

// Shorter runs are stored as they are: a reader takes longer for many small blocks than for the
// bytes that they save.
inline constexpr int64_t kLeastPadding = 1024;

// The runs in one granule of `output`, ascending; `assembly` belongs to its slot. None for outputs
// that compute (a combination). Takes the time and the buffers of making one granule.
[[nodiscard]] std::vector<PaddingRun> find_padding(const Output& output, const Assembly& assembly);

// The runs in bytes [begin, end) of a tensor, counted from `begin`. `granule`: the runs of each of
// its granules, as find_padding returns them.
[[nodiscard]] std::vector<PaddingRun> padding_between(std::span<const PaddingRun> granule,
                                                      int64_t granule_bytes, int64_t begin,
                                                      int64_t end);

}  // namespace mxfp4
