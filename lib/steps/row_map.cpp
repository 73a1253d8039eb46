#include "lib/steps/row_map.hpp"

#include <algorithm>
#include <utility>

namespace mxfp4 {
namespace {

// Puts moves together as they come, so that only the entries take memory. Moves that are one piece
// on both sides become one move, and moves of one size at even distances become one entry.
class MoveList {
 public:
  void add(const RowMoves& next) {
    if (piece_ && extends(*piece_, next)) {
      piece_->bytes += next.bytes;
      piece_->fill += next.fill;
      return;
    }
    finish_piece();
    piece_ = next;
  }

  std::vector<RowMoves> take() {
    finish_piece();
    return std::move(entries_);
  }

 private:
  static bool extends(const RowMoves& last, const RowMoves& next) {
    const bool copies = last.fill == 0 && next.fill == 0 && last.from + last.bytes == next.from;
    const bool fills = last.bytes == 0 && next.bytes == 0;
    return (copies || fills) && last.to + last.bytes + last.fill == next.to;
  }

  void finish_piece() {
    if (piece_ && !count(*piece_)) entries_.push_back(*piece_);
    piece_.reset();
  }

  // Counts the piece into the last entry; false when it does not continue that entry.
  bool count(const RowMoves& next) {
    if (entries_.empty()) return false;
    RowMoves& last = entries_.back();
    const int64_t from_step = last.count == 1 ? next.from - last.from : last.from_step;
    const int64_t to_step = last.count == 1 ? next.to - last.to : last.to_step;
    if (last.bytes != next.bytes || last.fill != next.fill ||
        last.from + last.count * from_step != next.from ||
        last.to + last.count * to_step != next.to) {
      return false;
    }
    last.from_step = from_step;
    last.to_step = to_step;
    ++last.count;
    return true;
  }

  std::optional<RowMoves> piece_;  // not yet in entries_
  std::vector<RowMoves> entries_;
};

}  // namespace

std::optional<GatherRows> as_gather(const Permute& permute) {
  size_t moved = permute.order.size();
  int64_t bits = unit_bits(permute.unit);
  while (moved > 0 && permute.order[moved - 1] == static_cast<int>(moved) - 1) {
    bits *= permute.dims[--moved];
  }
  if (bits % 8 != 0 || bits < 8 * kLeastGathered) return std::nullopt;
  GatherRows gather = {bits / 8, {0}};
  // The rows' numbers, from the outermost axis of the output on.
  for (size_t i = 0; i < moved; ++i) {
    const auto axis = static_cast<size_t>(permute.order[i]);
    int64_t stride = 1;
    for (size_t inner = axis + 1; inner < moved; ++inner) stride *= permute.dims[inner];
    std::vector<int64_t> longer;
    for (const int64_t row : gather.source) {
      for (int64_t at = 0; at < permute.dims[axis]; ++at) longer.push_back(row + at * stride);
    }
    gather.source = std::move(longer);
  }
  return gather;
}

RowMap::RowMap(const GatherRows& gather)
    : in_rows_(static_cast<int64_t>(gather.source.size())),
      in_row_bytes_(gather.row_bytes),
      out_row_bytes_(gather.row_bytes),
      copied_(gather.row_bytes),
      source_(gather.source) {
  for (int64_t& row : source_) row *= in_row_bytes_;
}

RowMap::RowMap(const PadMatrix& pad)
    : in_rows_(pad.rows),
      in_row_bytes_(pad.row_bytes),
      out_row_bytes_(pad.out_row_bytes),
      copied_(pad.row_bytes),
      fill_(pad.fill),
      source_(static_cast<size_t>(pad.out_rows), kFillRow) {
  for (int64_t row = 0; row < pad.rows; ++row) {
    source_[static_cast<size_t>(row)] = row * in_row_bytes_;
  }
}

bool RowMap::append(const GatherRows& gather) {
  if (gather.row_bytes != out_row_bytes_) return false;
  std::vector<int64_t> both;
  both.reserve(gather.source.size());
  for (int64_t middle : gather.source) both.push_back(source_[static_cast<size_t>(middle)]);
  source_ = std::move(both);
  return true;
}

bool RowMap::append(const PadMatrix& pad) {
  if (pad.row_bytes != out_row_bytes_ || pad.rows != out_rows()) return false;
  const bool filled = copied_ != out_row_bytes_ || std::ranges::count(source_, kFillRow) != 0;
  if (filled && fill_ != pad.fill) return false;
  fill_ = pad.fill;
  out_row_bytes_ = pad.out_row_bytes;
  source_.resize(static_cast<size_t>(pad.out_rows), kFillRow);
  return true;
}

std::vector<RowMoves> RowMap::all_rows() const {
  if (out_bytes() == 0) return {};
  if (in_row_bytes_ == 0) return {{.fill = out_bytes()}};
  std::vector<int64_t> destination(static_cast<size_t>(in_rows_));
  for (int64_t row = 0; row < out_rows(); ++row) {
    const int64_t source = source_[static_cast<size_t>(row)];
    if (source != kFillRow) destination[static_cast<size_t>(source / in_row_bytes_)] = row;
  }
  MoveList moves;
  for (int64_t row = 0; row < in_rows_; ++row) {
    moves.add({.from = row * in_row_bytes_,
               .to = destination[static_cast<size_t>(row)] * out_row_bytes_,
               .bytes = copied_,
               .fill = out_row_bytes_ - copied_});
  }
  for (int64_t row = 0; row < out_rows(); ++row) {
    if (source_[static_cast<size_t>(row)] != kFillRow) continue;
    moves.add({.to = row * out_row_bytes_, .fill = out_row_bytes_});
  }
  return moves.take();
}

std::vector<RowMoves> RowMap::gather(int64_t first, int64_t count) const {
  MoveList moves;
  int64_t to = 0;
  for (const int64_t source : sources(first, count)) {
    if (source == kFillRow) {
      moves.add({.to = to, .fill = out_row_bytes_});
    } else {
      moves.add({.from = source, .to = to, .bytes = copied_, .fill = out_row_bytes_ - copied_});
    }
    to += out_row_bytes_;
  }
  return moves.take();
}

std::vector<RowMoves> RowMap::scatter(int64_t first, int64_t count) const {
  MoveList moves;
  int64_t from = 0;
  for (const int64_t source : sources(first, count)) {
    if (source != kFillRow) moves.add({.from = from, .to = source, .bytes = copied_});
    from += out_row_bytes_;
  }
  return moves.take();
}

std::span<const int64_t> RowMap::sources(int64_t first, int64_t count) const {
  return std::span(source_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

std::optional<RowMap::EvenRows> RowMap::even_rows(int64_t first, int64_t count) const {
  if (copied_ != out_row_bytes_ || count < 1 || first + count > out_rows()) return std::nullopt;
  const auto source = sources(first, count);
  const int64_t stride = count == 1 ? in_row_bytes_ : source[1] - source[0];
  if (source[0] == kFillRow || stride < copied_) return std::nullopt;
  for (size_t row = 1; row < source.size(); ++row) {
    if (source[row] != source[row - 1] + stride) return std::nullopt;
  }
  return EvenRows{source[0], stride};
}

}  // namespace mxfp4
