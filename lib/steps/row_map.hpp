// Any chain of row gathers and paddings as one table: where each output row comes from. Runs on any
// range of output rows, so that a following step can take its rows strip by strip while they are in
// the caches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/kernels/tiles.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

class RowMap {
 public:
  explicit RowMap(const GatherRows& gather);
  explicit RowMap(const PadMatrix& pad);

  // Appends a step that works on the same rows. False, and nothing is changed, when the two cannot
  // be one table.
  [[nodiscard]] bool append(const GatherRows& gather);
  [[nodiscard]] bool append(const PadMatrix& pad);

  [[nodiscard]] int64_t in_bytes() const { return in_rows_ * in_row_bytes_; }
  [[nodiscard]] int64_t out_bytes() const { return out_rows() * out_row_bytes_; }
  [[nodiscard]] int64_t out_rows() const { return static_cast<int64_t>(source_.size()); }
  [[nodiscard]] int64_t out_row_bytes() const { return out_row_bytes_; }

  // All output rows, from first to last input row: rows that jump about cost less where they are
  // written past the caches than where they are read.
  void forward_all(const std::byte* in, bool streaming, std::byte* out) const;
  // Output rows first .. first + count - 1 into `out`, from all of the input.
  void forward(int64_t first, int64_t count, const std::byte* in, std::byte* out) const;
  // Where rows first .. first + count - 1 begin in the input and how far apart they are, in bytes,
  // when they are whole, evenly spaced and ascending there. Empty also past the end.
  struct EvenRows {
    int64_t begin, stride;
  };
  [[nodiscard]] std::optional<EvenRows> even_rows(int64_t first, int64_t count) const;
  // What forward() will read for these rows, or fewer at the end.
  [[nodiscard]] kernels::Upcoming upcoming(int64_t first, int64_t count, const std::byte* in) const;
  // The same rows of the output, in `in`, back to their places in all of the input.
  void inverse(int64_t first, int64_t count, const std::byte* in, bool streaming,
               std::byte* out) const;

 private:
  static constexpr int64_t kFillRow = -1;

  void find_destinations();
  // How many rows from `row` on are one piece in both; 1 or more.
  [[nodiscard]] int64_t rows_together(int64_t row, int64_t end) const;

  int64_t in_rows_;
  int64_t in_row_bytes_;
  int64_t out_row_bytes_;
  int64_t copied_;  // bytes of each row; the rest of an output row is fill
  std::byte fill_{0};
  std::vector<int64_t> source_;  // where each output row lies in the input, in bytes, or kFillRow
  std::vector<int64_t> destination_;  // the output row that each input row becomes
};

}  // namespace mxfp4
