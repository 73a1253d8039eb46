#include "lib/steps/stage.hpp"

#include <algorithm>
#include <utility>

#include "lib/kernels/copy.hpp"

namespace mxfp4 {
namespace {

std::optional<RowMap> row_map(const Step& step) {
  if (const auto* gather = std::get_if<GatherRows>(&step)) return RowMap(*gather);
  if (const auto* pad = std::get_if<PadMatrix>(&step)) return RowMap(*pad);
  return std::nullopt;
}

bool append(RowMap& rows, const Step& step) {
  if (const auto* gather = std::get_if<GatherRows>(&step)) return rows.append(*gather);
  if (const auto* pad = std::get_if<PadMatrix>(&step)) return rows.append(*pad);
  return false;
}

}  // namespace

std::vector<Stage> Stage::join(const std::vector<Step>& steps) {
  std::vector<Stage> stages;
  std::optional<RowMap> rows;  // not yet in a stage
  const auto finish_rows = [&] {
    if (!rows) return;
    const int64_t in = rows->in_bytes();
    const int64_t out = rows->out_bytes();
    stages.push_back({std::exchange(rows, std::nullopt), nullptr, in, out});
  };
  for (const Step& step : steps) {
    if (rows && append(*rows, step)) continue;
    if (auto fresh = row_map(step)) {
      finish_rows();
      rows = std::move(fresh);
      continue;
    }
    const int64_t row_bytes = rows ? std::max<int64_t>(1, rows->out_row_bytes()) : 1;
    std::shared_ptr<StripWork> work = make_strip_work(step, row_bytes);
    const bool joins =
        rows && work->strip_bytes() < rows->out_bytes() && work->strip_bytes() % row_bytes == 0;
    if (!joins) finish_rows();
    const int64_t in = joins ? rows->in_bytes() : step_in_bytes(step);
    stages.push_back({joins ? std::exchange(rows, std::nullopt) : std::nullopt, std::move(work), in,
                      step_out_bytes(step)});
  }
  finish_rows();
  return stages;
}

Stage::Stage(std::optional<RowMap> rows, std::shared_ptr<StripWork> work, int64_t in_bytes,
             int64_t out_bytes)
    : rows_(std::move(rows)), in_bytes_(in_bytes), out_bytes_(out_bytes) {
  if (rows_ && work) {
    const int64_t row_bytes = rows_->out_row_bytes();
    const auto first = rows_->even_rows(0, work->strip_bytes() / row_bytes);
    if (first && work->spread_rows(row_bytes, first->stride)) spread_ = first->stride;
  }
  work_ = std::move(work);
}

std::optional<int64_t> Stage::spread_strip(int64_t at) const {
  if (spread_ == 0) return std::nullopt;
  const int64_t row_bytes = rows_->out_row_bytes();
  const auto rows = rows_->even_rows(at / row_bytes, work_->strip_bytes() / row_bytes);
  if (!rows || rows->stride != spread_) return std::nullopt;
  return rows->begin;
}

int64_t Stage::scratch_bytes() const {
  return work_ && (rows_ || copies_inverse()) ? work_->strip_bytes() : 0;
}

void Stage::forward(ConstBytes in, bool streaming, MutableBytes out, MutableBytes scratch) const {
  if (!work_) {
    rows_->forward_all(in.data(), streaming, out.data());
  } else {
    const int64_t middle = middle_bytes();
    for (int64_t at = 0; at < middle; at += work_->strip_bytes()) {
      const int64_t bytes = std::min(work_->strip_bytes(), middle - at);
      const bool more = !rows_ && at + bytes < middle;
      if (const auto begin = spread_strip(at)) {
        const auto after = spread_strip(at + bytes);
        work_->forward_spread(at, in.data() + *begin, after ? in.data() + *after : nullptr,
                              streaming, out);
        continue;
      }
      ConstBytes strip;
      kernels::Upcoming next;
      if (rows_) {
        const int64_t row = rows_->out_row_bytes();
        rows_->forward(at / row, bytes / row, in.data(), false, scratch.data());
        strip = scratch.first(static_cast<size_t>(bytes));
        next = rows_->upcoming((at + bytes) / row, work_->strip_bytes() / row, in.data());
      } else {
        strip = in.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
      }
      work_->forward(at, strip, {streaming, more, next}, out);
    }
  }
  if (streaming) kernels::finish_streaming();
}

void Stage::inverse(ConstBytes in, bool streaming, MutableBytes out, MutableBytes scratch) const {
  if (!work_) {
    rows_->inverse(0, rows_->out_rows(), in.data(), streaming, out.data());
  } else {
    const int64_t middle = middle_bytes();
    for (int64_t at = 0; at < middle; at += work_->strip_bytes()) {
      const int64_t bytes = std::min(work_->strip_bytes(), middle - at);
      const bool more = at + bytes < middle;
      if (const auto begin = spread_strip(at);
          begin && !(streaming && work_->inverse_writes_parts())) {
        work_->inverse_spread(at, in, streaming, more, out.data() + *begin);
      } else if (rows_) {
        const int64_t row = rows_->out_row_bytes();
        work_->inverse(at, in, {false, more, {}}, scratch.first(static_cast<size_t>(bytes)));
        rows_->inverse(at / row, bytes / row, scratch.data(), streaming, out.data());
      } else if (streaming && copies_inverse()) {
        work_->inverse(at, in, {false, more, {}}, scratch.first(static_cast<size_t>(bytes)));
        kernels::copy_bytes(scratch.data(), bytes, {true, nullptr}, out.data() + at);
      } else {
        work_->inverse(at, in, {streaming, more, {}},
                       out.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes)));
      }
    }
  }
  if (streaming) kernels::finish_streaming();
}

}  // namespace mxfp4
