#include "lib/steps/stage.hpp"

#include <algorithm>
#include <limits>
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
  if (work) strips_ = strips(rows_, *work, middle_bytes());
  work_ = std::move(work);
}

std::vector<Stage::Strip> Stage::strips(const std::optional<RowMap>& rows, StripWork& work,
                                        int64_t middle) {
  const int64_t strip_bytes = work.strip_bytes();
  std::vector<Strip> strips;
  int64_t stride = 0;  // of the first evenly spaced rows, and all others
  for (int64_t at = 0; at < middle; at += strip_bytes) {
    Strip& strip = strips.emplace_back(Strip{at, std::min(strip_bytes, middle - at), {}});
    if (!rows || (stride == 0 && at > 0)) continue;
    const int64_t row_bytes = rows->out_row_bytes();
    const auto even = rows->even_rows(at / row_bytes, strip_bytes / row_bytes);
    if (even && stride == 0 && work.spread_rows(row_bytes, even->stride)) stride = even->stride;
    if (even && even->stride == stride) strip.begin = even->begin;
  }
  // Halves of woven rows in turn: each pulls what lies between its rows into the caches.
  std::ranges::stable_sort(strips, {}, [](const Strip& strip) {
    return strip.begin.value_or(std::numeric_limits<int64_t>::max());
  });
  return strips;
}

int64_t Stage::scratch_bytes() const { return work_ && rows_ ? work_->strip_bytes() : 0; }

void Stage::forward(ConstBytes in, StageHints hints, MutableBytes out, MutableBytes scratch) const {
  if (!work_) rows_->forward_all(in.data(), hints.streaming, out.data());
  for (size_t i = 0; i < strips_.size(); ++i) {
    const auto& [at, bytes, begin] = strips_[i];
    const Strip* after = i + 1 < strips_.size() ? &strips_[i + 1] : nullptr;
    if (begin) {
      const bool spread = after != nullptr && after->begin;
      work_->forward_spread(at, in.data() + *begin, spread ? in.data() + *after->begin : nullptr,
                            hints.streaming, out);
    } else if (rows_) {
      const int64_t row = rows_->out_row_bytes();
      rows_->forward(at / row, bytes / row, in.data(), scratch.data());
      const auto next = rows_->upcoming((at + bytes) / row, work_->strip_bytes() / row, in.data());
      work_->forward(at, scratch.first(static_cast<size_t>(bytes)), {hints.streaming, false, next},
                     out);
    } else {
      const ConstBytes strip = in.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
      work_->forward(at, strip, {hints.streaming, after != nullptr || hints.more, {}}, out);
    }
  }
  if (hints.streaming) kernels::finish_streaming();
}

void Stage::inverse(ConstBytes in, StageHints hints, MutableBytes out, MutableBytes scratch) const {
  if (!work_) rows_->inverse(0, rows_->out_rows(), in.data(), hints.streaming, out.data());
  for (size_t i = 0; i < strips_.size(); ++i) {
    const auto& [at, bytes, begin] = strips_[i];
    const bool last = i + 1 == strips_.size();
    const bool more = last ? hints.more : strips_[i + 1].at == at + bytes;
    const auto size = static_cast<size_t>(bytes);
    if (begin && !(hints.streaming && work_->spread_writes_parts())) {
      const auto next = last ? std::nullopt : std::optional(strips_[i + 1].at);
      work_->inverse_spread(at, in, hints.streaming, next, out.data() + *begin);
    } else if (rows_) {
      const int64_t row = rows_->out_row_bytes();
      work_->inverse(at, in, {false, more, {}}, scratch.first(size));
      rows_->inverse(at / row, bytes / row, scratch.data(), hints.streaming, out.data());
    } else {
      work_->inverse(at, in, {hints.streaming, more, {}},
                     out.subspan(static_cast<size_t>(at), size));
    }
  }
  if (hints.streaming) kernels::finish_streaming();
}

}  // namespace mxfp4
