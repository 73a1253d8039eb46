// How a program runs: its steps, joined where joining saves a pass over memory. Row gathers and
// paddings become one table, and what follows them takes its rows strip by strip.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/steps/row_map.hpp"
#include "lib/steps/step.hpp"
#include "lib/steps/strip_work.hpp"

namespace mxfp4 {

struct StageHints {
  bool streaming = false;  // the output goes past the caches; it is complete when the call returns
  bool more = false;       // the next call's input begins where this one's ends
};

class Stage {
 public:
  // The stages of a list of steps, in order.
  [[nodiscard]] static std::vector<Stage> join(const std::vector<Step>& steps);

  [[nodiscard]] int64_t in_bytes() const { return in_bytes_; }
  [[nodiscard]] int64_t out_bytes() const { return out_bytes_; }
  // For one strip between the rows and what follows.
  [[nodiscard]] int64_t scratch_bytes() const;

  // `in` and `out` have the stage's sizes, `scratch` at least scratch_bytes(); none overlap.
  void forward(ConstBytes in, StageHints hints, MutableBytes out, MutableBytes scratch) const;
  void inverse(ConstBytes in, StageHints hints, MutableBytes out, MutableBytes scratch) const;

 private:
  Stage(std::optional<RowMap> rows, std::shared_ptr<StripWork> work, int64_t in_bytes,
        int64_t out_bytes);

  // Between rows and work; the input or output itself when the other is absent.
  [[nodiscard]] int64_t middle_bytes() const { return rows_ ? rows_->out_bytes() : in_bytes_; }

  struct Strip {
    int64_t at, bytes;             // of the middle
    std::optional<int64_t> begin;  // in the input, where the work takes it from there
  };
  // The strips in the order in which they run.
  [[nodiscard]] static std::vector<Strip> strips(const std::optional<RowMap>& rows, StripWork& work,
                                                 int64_t middle);

  std::optional<RowMap> rows_;             // first,
  std::shared_ptr<const StripWork> work_;  // then; one of the two may be absent
  std::vector<Strip> strips_;
  int64_t in_bytes_;
  int64_t out_bytes_;
};

}  // namespace mxfp4
