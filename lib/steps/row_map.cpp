#include "lib/steps/row_map.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/kernels/copy.hpp"

namespace mxfp4 {

RowMap::RowMap(const GatherRows& gather)
    : in_rows_(static_cast<int64_t>(gather.source.size())),
      in_row_bytes_(gather.row_bytes),
      out_row_bytes_(gather.row_bytes),
      copied_(gather.row_bytes),
      source_(gather.source) {
  for (int64_t& row : source_) row *= in_row_bytes_;
  find_destinations();
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
  find_destinations();
}

bool RowMap::append(const GatherRows& gather) {
  if (gather.row_bytes != out_row_bytes_) return false;
  std::vector<int64_t> both;
  both.reserve(gather.source.size());
  for (int64_t middle : gather.source) both.push_back(source_[static_cast<size_t>(middle)]);
  source_ = std::move(both);
  find_destinations();
  return true;
}

bool RowMap::append(const PadMatrix& pad) {
  if (pad.row_bytes != out_row_bytes_ || pad.rows != out_rows()) return false;
  const bool filled = copied_ != out_row_bytes_ || std::ranges::count(source_, kFillRow) != 0;
  if (filled && fill_ != pad.fill) return false;
  fill_ = pad.fill;
  out_row_bytes_ = pad.out_row_bytes;
  source_.resize(static_cast<size_t>(pad.out_rows), kFillRow);
  find_destinations();
  return true;
}

void RowMap::find_destinations() {
  destination_.resize(static_cast<size_t>(in_rows_));
  if (in_row_bytes_ == 0) return;
  for (int64_t row = 0; row < out_rows(); ++row) {
    const int64_t source = source_[static_cast<size_t>(row)];
    if (source != kFillRow) destination_[static_cast<size_t>(source / in_row_bytes_)] = row;
  }
}

int64_t RowMap::rows_together(int64_t row, int64_t end) const {
  if (copied_ != in_row_bytes_ || copied_ != out_row_bytes_) return 1;
  int64_t next = row + 1;
  while (next < end && source_[static_cast<size_t>(next)] ==
                           source_[static_cast<size_t>(row)] + (next - row) * in_row_bytes_) {
    ++next;
  }
  return next - row;
}

void RowMap::forward_all(const std::byte* in, bool streaming, std::byte* out) const {
  const auto fill = [&](std::byte* at, int64_t bytes) {
    std::memset(at, std::to_integer<int>(fill_), static_cast<size_t>(bytes));
  };
  if (in_row_bytes_ == 0) return fill(out, out_bytes());
  const bool whole = copied_ == in_row_bytes_ && copied_ == out_row_bytes_;
  for (size_t row = 0; row < destination_.size();) {
    size_t rows = 1;  // that are one piece on both sides
    while (whole && row + rows < destination_.size() &&
           destination_[row + rows] == destination_[row] + static_cast<int64_t>(rows)) {
      ++rows;
    }
    std::byte* to = out + destination_[row] * out_row_bytes_;
    const int64_t bytes = static_cast<int64_t>(rows) * copied_;
    kernels::copy_bytes(in, bytes, {streaming, nullptr}, to);
    fill(to + bytes, out_row_bytes_ - copied_);
    in += static_cast<int64_t>(rows) * in_row_bytes_;
    row += rows;
  }
  for (int64_t row = 0; row < out_rows(); ++row) {
    if (source_[static_cast<size_t>(row)] != kFillRow) continue;
    fill(out + row * out_row_bytes_, out_row_bytes_);
  }
}

void RowMap::forward(int64_t first, int64_t count, const std::byte* in, std::byte* out) const {
  const int64_t end = first + count;
  for (int64_t row = first; row < end;) {
    const int64_t source = source_[static_cast<size_t>(row)];
    if (source == kFillRow) {
      std::memset(out, std::to_integer<int>(fill_), static_cast<size_t>(out_row_bytes_));
      out += out_row_bytes_;
      ++row;
      continue;
    }
    const int64_t rows = rows_together(row, end);
    // Rows that jump about are not foreseen by the hardware.
    const bool jumps = row + rows < end && source_[static_cast<size_t>(row + rows)] != kFillRow;
    const std::byte* next = jumps ? in + source_[static_cast<size_t>(row + rows)] : nullptr;
    kernels::copy_bytes(in + source, rows * copied_, {false, next}, out);
    std::memset(out + rows * copied_, std::to_integer<int>(fill_),
                static_cast<size_t>(rows * (out_row_bytes_ - copied_)));
    out += rows * out_row_bytes_;
    row += rows;
  }
}

std::optional<RowMap::EvenRows> RowMap::even_rows(int64_t first, int64_t count) const {
  if (copied_ != out_row_bytes_ || count < 1 || first + count > out_rows()) return std::nullopt;
  const auto source =
      std::span(source_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  const int64_t stride = count == 1 ? in_row_bytes_ : source[1] - source[0];
  if (source[0] == kFillRow || stride < copied_) return std::nullopt;
  for (size_t row = 1; row < source.size(); ++row) {
    if (source[row] != source[row - 1] + stride) return std::nullopt;
  }
  return EvenRows{source[0], stride};
}

kernels::Upcoming RowMap::upcoming(int64_t first, int64_t count, const std::byte* in) const {
  const auto begin = static_cast<size_t>(std::min(first, out_rows()));
  const auto rows = static_cast<size_t>(std::min(count, out_rows() - std::min(first, out_rows())));
  return {rows == 0 ? nullptr : in, std::span(source_).subspan(begin, rows), copied_};
}

void RowMap::inverse(int64_t first, int64_t count, const std::byte* in, bool streaming,
                     std::byte* out) const {
  const int64_t end = first + count;
  for (int64_t row = first; row < end;) {
    const int64_t source = source_[static_cast<size_t>(row)];
    const int64_t rows = source == kFillRow ? 1 : rows_together(row, end);
    if (source != kFillRow) {
      kernels::copy_bytes(in, rows * copied_, {streaming, nullptr}, out + source);
    }
    in += rows * out_row_bytes_;
    row += rows;
  }
}

}  // namespace mxfp4
