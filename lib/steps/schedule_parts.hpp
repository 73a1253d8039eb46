// A forward schedule, cut into parts that run by themselves: each makes about a megabyte of the
// output, so what a part reads and writes stays in the second-level cache of the thread that
// runs it.
//
// A part's output is mostly one range of the whole output. Where two halves of interleaved rows are
// taken apart it is two ranges, one in each half, so that the input between them is read once.
// Where input rows become columns of the output, as in MARLIN's weights, it is a block of
// those columns.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/steps/schedule.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

// `rows` times `width` bytes of the whole output, which begin `pitch` bytes apart.
struct OutputBlock {
  int64_t begin = 0;
  int64_t width = 0;
  int64_t rows = 1;
  int64_t pitch = 0;

  [[nodiscard]] int64_t bytes() const { return rows * width; }
};

struct SchedulePart {
  // Reads parts of the whole input, so run_schedule() wants a BringInput; writes the block's rows
  // one behind the other, through the caches.
  Schedule schedule;
  OutputBlock out;

  [[nodiscard]] int64_t bytes() const { return schedule.out_bytes; }
};

// Parts of at most `most_bytes` bytes, which together write each byte of the output once. `whole`
// is the forward schedule of `steps`. Empty where the operations do not allow such parts.
[[nodiscard]] std::vector<SchedulePart> cut_into_parts(const std::vector<Step>& steps,
                                                       const Schedule& whole, int64_t most_bytes);

}  // namespace mxfp4
