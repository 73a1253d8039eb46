// Any chain of row gathers and paddings as one table: where each output row comes from. It gives
// the moves for any range of output rows, so that a following step can take its rows strip by strip
// while they are in the caches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/steps/schedule.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

// The gather that a permutation is whose innermost axes stay innermost, if they are rows of
// kLeastGathered bytes or more: longer than what tiles move, and copied past the caches.
inline constexpr int64_t kLeastGathered = 512;
[[nodiscard]] std::optional<GatherRows> as_gather(const Permute& permute);

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
  [[nodiscard]] int64_t copied_bytes() const { return copied_; }  // of each row; the rest is fill
  [[nodiscard]] std::byte filling() const { return fill_; }

  // All output rows, from first to last input row: rows that jump about cost less where they are
  // written past the caches than where they are read.
  [[nodiscard]] std::vector<RowMoves> all_rows() const;
  // Output rows first .. first + count - 1 side by side, from all of the input.
  [[nodiscard]] std::vector<RowMoves> gather(int64_t first, int64_t count) const;
  // The same rows back to their places in the input; what was filled is left out.
  [[nodiscard]] std::vector<RowMoves> scatter(int64_t first, int64_t count) const;
  // Where the rows begin in the input, in bytes; negative for a row that is all fill.
  [[nodiscard]] std::span<const int64_t> sources(int64_t first, int64_t count) const;
  // Where rows first .. first + count - 1 begin in the input and how far apart they are, in bytes,
  // when they are whole, evenly spaced and ascending there. Empty also past the end.
  struct EvenRows {
    int64_t begin, stride;
  };
  [[nodiscard]] std::optional<EvenRows> even_rows(int64_t first, int64_t count) const;

 private:
  static constexpr int64_t kFillRow = -1;

  int64_t in_rows_;
  int64_t in_row_bytes_;
  int64_t out_row_bytes_;
  int64_t copied_;
  std::byte fill_{0};
  std::vector<int64_t> source_;  // where each output row lies in the input, in bytes, or kFillRow
};

}  // namespace mxfp4
