// How a step is cut into strips: pieces of consecutive input, small enough to stay in the
// second-level cache between what makes them and the step itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/steps/schedule.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

// The kernel of a strip in one direction, and the bytes it reads: pieces of `run_bytes` bytes at
// `runs`, from where the strip is read. The runs are empty where a kernel fetches nothing.
struct StripKernel {
  Kernel kernel;
  std::vector<int64_t> runs;
  int64_t run_bytes = 0;
};

class StripCut {
 public:
  // Strips are whole multiples of `row_bytes` where the step allows it. `step` is a permutation, a
  // recoding or a custom step.
  StripCut(const Step& step, int64_t row_bytes);

  // Bytes of input of each strip; the last may be shorter. All of the input when the step has no
  // smaller parts.
  [[nodiscard]] int64_t strip_bytes() const { return strip_bytes_; }
  // Where the strip that begins at `offset` of the input begins in the output.
  [[nodiscard]] int64_t out_offset(int64_t offset) const;
  // Bytes of output of a strip of `bytes`.
  [[nodiscard]] int64_t out_bytes(int64_t bytes) const;

  [[nodiscard]] StripKernel kernel(Direction direction) const;
  // The kernel of strips whose rows of `row_bytes` lie `stride` bytes apart on the loaded side, not
  // one after another. Empty unless tiles exist for such strips in both directions.
  [[nodiscard]] std::optional<StripKernel> spread_kernel(int64_t row_bytes, int64_t stride,
                                                         Direction direction) const;

 private:
  // An axis of a strip of a permutation; strides in units.
  struct Axis {
    int64_t size, in, out;
  };
  using Axes = std::vector<Axis>;
  // A loop around the strips, outermost first.
  struct Around {
    int64_t size;
    int64_t out_bytes;  // of a step along it
  };

  void cut_permute(const Permute& step, int64_t row_bytes);
  // Moves part of the first axis from the strip to a loop around it; false when a strip would then
  // not be complete by itself.
  bool cut_first_axis(int64_t row_bytes);
  // The strip's axes with rows of `row_bytes` put `stride` bytes apart; empty when an axis covers
  // parts of rows.
  [[nodiscard]] std::optional<Axes> spread_axes(int64_t row_bytes, int64_t stride) const;
  [[nodiscard]] StripKernel permute_kernel(const Axes& axes, Direction direction) const;

  static Axes axes_of(const Permute& step);
  static kernels::LoopNest nest_of(Axes axes, int64_t Axis::*read, int64_t Axis::*write);
  static void find_runs(Axes axes, int64_t Axis::*side, int64_t unit_bits, StripKernel& kernel);

  Step step_;
  int64_t strip_bytes_;
  int64_t unit_bits_ = 8;
  std::vector<Around> around_;
  Axes axes_;
};

}  // namespace mxfp4
