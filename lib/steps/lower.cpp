#include "lib/steps/lower.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "lib/steps/bands.hpp"
#include "lib/steps/row_map.hpp"
#include "lib/steps/strip_cut.hpp"

namespace mxfp4 {
namespace {

// One pass over memory: rows are moved, then a step takes them; one of the two may be absent. Sizes
// and order are the forward direction's.
struct Pass {
  std::optional<RowMap> rows;
  std::optional<StripCut> cut;
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
};

std::optional<RowMap> row_map(const Step& step) {
  if (const auto* gather = std::get_if<GatherRows>(&step)) return RowMap(*gather);
  if (const auto* pad = std::get_if<PadMatrix>(&step)) return RowMap(*pad);
  if (const auto* permute = std::get_if<Permute>(&step)) {
    if (const auto gathered = as_gather(*permute)) return RowMap(*gathered);
  }
  return std::nullopt;
}

bool append(RowMap& rows, const Step& step) {
  if (const auto* gather = std::get_if<GatherRows>(&step)) return rows.append(*gather);
  if (const auto* pad = std::get_if<PadMatrix>(&step)) return rows.append(*pad);
  if (const auto* permute = std::get_if<Permute>(&step)) {
    if (const auto gathered = as_gather(*permute)) return rows.append(*gathered);
  }
  return false;
}

// Row gathers and paddings become one table, and a step behind them takes its rows strip by strip.
std::vector<Pass> join(const std::vector<Step>& steps) {
  std::vector<Pass> passes;
  std::optional<RowMap> rows;  // not yet in a pass
  const auto finish_rows = [&] {
    if (!rows) return;
    const int64_t in = rows->in_bytes();
    const int64_t out = rows->out_bytes();
    passes.push_back({std::exchange(rows, std::nullopt), std::nullopt, in, out});
  };
  for (const Step& step : steps) {
    if (rows && append(*rows, step)) continue;
    if (auto fresh = row_map(step)) {
      finish_rows();
      rows = std::move(fresh);
      continue;
    }
    const int64_t row_bytes = rows ? std::max<int64_t>(1, rows->out_row_bytes()) : 1;
    StripCut cut(step, row_bytes);
    const bool joins =
        rows && cut.strip_bytes() < rows->out_bytes() && cut.strip_bytes() % row_bytes == 0;
    if (!joins) finish_rows();
    const int64_t in = joins ? rows->in_bytes() : step_in_bytes(step);
    passes.push_back({joins ? std::exchange(rows, std::nullopt) : std::nullopt, std::move(cut), in,
                      step_out_bytes(step)});
  }
  finish_rows();
  return passes;
}

// A strip of what lies between the rows and the step of a pass.
struct Strip {
  int64_t at = 0;
  int64_t bytes = 0;
  std::optional<int64_t> begin;  // where it is loaded, if its rows are evenly spaced there
};

struct Strips {
  std::vector<Strip> in_order;  // the order in which they run
  int64_t stride = 0;           // of evenly spaced rows
};

// Where the first row that a strip reads lies; behind all others for a strip of filling.
int64_t first_source(const Pass& pass, const Strip& strip) {
  if (!pass.rows) return strip.at;
  const int64_t row_bytes = pass.rows->out_row_bytes();
  for (const int64_t source : pass.rows->sources(strip.at / row_bytes, strip.bytes / row_bytes)) {
    if (source >= 0) return source;
  }
  return std::numeric_limits<int64_t>::max();
}

Strips strips_of(const Pass& pass) {
  const StripCut& cut = *pass.cut;
  const int64_t middle = pass.rows ? pass.rows->out_bytes() : pass.in_bytes;
  Strips strips;
  for (int64_t at = 0; at < middle; at += cut.strip_bytes()) {
    const int64_t bytes = std::min(cut.strip_bytes(), middle - at);
    Strip& strip = strips.in_order.emplace_back(Strip{at, bytes, {}});
    if (!pass.rows || (strips.stride == 0 && at > 0)) continue;
    const int64_t row_bytes = pass.rows->out_row_bytes();
    const auto even = pass.rows->even_rows(at / row_bytes, cut.strip_bytes() / row_bytes);
    if (even && strips.stride == 0 &&
        cut.spread_kernel(row_bytes, even->stride, Direction::kForward)) {
      strips.stride = even->stride;
    }
    if (even && even->stride == strips.stride) strip.begin = even->begin;
  }
  // Halves of interleaved rows run in turn: each brings the rows between its own into the caches.
  std::ranges::stable_sort(strips.in_order, {},
                           [&](const Strip& strip) { return first_source(pass, strip); });
  return strips;
}

// Where a pass reads and writes, and what surrounds it.
struct Ends {
  Place from = Place::kInput;
  Place to = Place::kOutput;
  bool streaming = false;
  bool more = false;  // its input goes on in the next band
};

// Adds the operations of one pass to a schedule.
class PassLowering {
 public:
  PassLowering(const Pass& pass, Direction direction, const Ends& ends, Schedule& schedule)
      : pass_(pass),
        forward_(direction == Direction::kForward),
        direction_(direction),
        ends_(ends),
        schedule_(schedule) {}

  void add() {
    if (pass_.cut) return add_strips();
    const RowMap& rows = *pass_.rows;
    add_moves(forward_ ? rows.all_rows() : rows.scatter(0, rows.out_rows()), {ends_.from, 0},
              {ends_.to, 0}, ends_.streaming);
  }

 private:
  // A kernel of the schedule, and the bytes of a strip that it reads.
  struct Added {
    size_t kernel;
    Range runs;
    int64_t run_bytes;
    bool tiles;
  };

  void add_strips() {
    const Strips strips = strips_of(pass_);
    stride_ = strips.stride;
    add_kernels(strips);
    std::vector<Fetch> reads;
    for (const Strip& strip : strips.in_order) reads.push_back(read_of(strip));
    for (size_t i = 0; i < reads.size(); ++i) {
      std::optional<Fetch> next;
      if (i + 1 < reads.size()) {
        next = reads[i + 1];
      } else if (ends_.more) {
        next = reads.front();
        next->from.offset += forward_ ? pass_.in_bytes : pass_.out_bytes;
        next->next_band = true;
      }
      forward_ ? add_forward(strips.in_order[i], next) : add_inverse(strips.in_order[i], next);
    }
  }

  // The kernels that the strips need.
  void add_kernels(const Strips& strips) {
    const auto spread = [](const Strip& strip) { return strip.begin.has_value(); };
    if (std::ranges::any_of(strips.in_order, spread)) {
      const int64_t row_bytes = pass_.rows->out_row_bytes();
      const auto kernel = pass_.cut->spread_kernel(row_bytes, strips.stride, direction_);
      // When the inverse writes past the caches, tiles that write parts of lines cost more than a
      // strip that is made in the caches and copied row by row.
      const bool parts = !std::get<kernels::TilePlan>(kernel->kernel).staging.has_value();
      if (forward_ || !ends_.streaming || !parts) spread_ = add_kernel(*kernel);
    }
    const auto runs_plain = [&](const Strip& strip) { return !spread_ || !strip.begin; };
    if (std::ranges::any_of(strips.in_order, runs_plain)) {
      plain_ = add_kernel(pass_.cut->kernel(direction_));
    }
  }

  Added add_kernel(const StripKernel& strip) {
    schedule_.kernels.push_back(strip.kernel);
    return {schedule_.kernels.size() - 1, add_runs(strip.runs), strip.run_bytes,
            std::holds_alternative<kernels::TilePlan>(strip.kernel)};
  }

  Range add_runs(std::span<const int64_t> runs) {
    const Range range = {schedule_.runs.size(), runs.size()};
    schedule_.runs.insert(schedule_.runs.end(), runs.begin(), runs.end());
    return range;
  }

  [[nodiscard]] bool is_spread(const Strip& strip) const { return spread_ && strip.begin; }
  [[nodiscard]] const Added& kernel_of(const Strip& strip) const {
    return is_spread(strip) ? *spread_ : *plain_;
  }
  // Whether the strip's rows go through the strip buffer.
  [[nodiscard]] bool is_gathered(const Strip& strip) const {
    return pass_.rows && !is_spread(strip);
  }

  // Where a strip's bytes lie on the loaded side and on the other.
  [[nodiscard]] int64_t loaded_offset(const Strip& strip) const {
    return is_spread(strip) ? *strip.begin : strip.at;
  }
  [[nodiscard]] int64_t laid_out_offset(const Strip& strip) const {
    return pass_.cut->out_offset(strip.at);
  }

  Fetch read_of(const Strip& strip) {
    const Added& kernel = kernel_of(strip);
    if (!forward_) {
      return {{ends_.from, laid_out_offset(strip)}, kernel.runs, kernel.run_bytes, false};
    }
    if (!is_gathered(strip)) {
      return {{ends_.from, loaded_offset(strip)}, kernel.runs, kernel.run_bytes, false};
    }
    const RowMap& rows = *pass_.rows;
    const auto [first, count] = rows_of(strip);
    const Range sources = kernel.tiles ? add_runs(rows.sources(first, count)) : Range();
    return {{ends_.from, 0}, sources, rows.copied_bytes(), false};
  }

  void add_forward(const Strip& strip, const std::optional<Fetch>& next) {
    const Address out = {ends_.to, laid_out_offset(strip)};
    if (!is_gathered(strip)) {
      return add_run(strip, {ends_.from, loaded_offset(strip)}, out, ends_.streaming, next);
    }
    const auto [first, count] = rows_of(strip);
    add_moves(pass_.rows->gather(first, count), {ends_.from, 0}, {Place::kStrip, 0}, false);
    add_run(strip, {Place::kStrip, 0}, out, ends_.streaming, next);
  }

  void add_inverse(const Strip& strip, const std::optional<Fetch>& next) {
    const Address in = {ends_.from, laid_out_offset(strip)};
    if (!is_gathered(strip)) {
      return add_run(strip, in, {ends_.to, loaded_offset(strip)}, ends_.streaming, next);
    }
    const auto [first, count] = rows_of(strip);
    add_run(strip, in, {Place::kStrip, 0}, false, next);
    add_moves(pass_.rows->scatter(first, count), {Place::kStrip, 0}, {ends_.to, 0},
              ends_.streaming);
  }

  // The first row of a strip, and how many.
  [[nodiscard]] std::pair<int64_t, int64_t> rows_of(const Strip& strip) const {
    const int64_t row_bytes = pass_.rows->out_row_bytes();
    return {strip.at / row_bytes, strip.bytes / row_bytes};
  }

  void add_moves(const std::vector<RowMoves>& moves, Address from, Address to, bool streaming) {
    const Range range = {schedule_.moves.size(), moves.size()};
    schedule_.moves.insert(schedule_.moves.end(), moves.begin(), moves.end());
    for (const Address& address : {from, to}) {
      if (address.place == Place::kStrip) grow_strip_buffer();
    }
    schedule_.operations.push_back({.from = from,
                                    .to = to,
                                    .moves = range,
                                    .filling = pass_.rows->filling(),
                                    .streaming = streaming});
  }

  void grow_strip_buffer() {
    schedule_.strip_bytes = std::max(schedule_.strip_bytes, pass_.cut->strip_bytes());
  }

  void add_run(const Strip& strip, Address from, Address to, bool streaming,
               const std::optional<Fetch>& next) {
    const Added& kernel = kernel_of(strip);
    const int64_t laid_out = pass_.cut->out_bytes(strip.bytes);
    schedule_.operations.push_back({.kernel = kernel.kernel,
                                    .from = from,
                                    .to = to,
                                    .in_bytes = forward_ ? strip.bytes : laid_out,
                                    .out_bytes = forward_ ? laid_out : strip.bytes,
                                    .streaming = streaming,
                                    .next = kernel.tiles ? next : std::nullopt});
  }

  const Pass& pass_;
  bool forward_;
  Direction direction_;
  Ends ends_;
  Schedule& schedule_;
  int64_t stride_ = 0;  // of spread strips' rows
  std::optional<Added> plain_;
  std::optional<Added> spread_;
};

// Adds the copy that a program without steps is.
void add_copy(Schedule& schedule, bool streaming) {
  if (schedule.in_bytes == 0) return;
  schedule.moves.push_back({.bytes = schedule.in_bytes});
  schedule.operations.push_back(
      {.to = {Place::kOutput, 0}, .moves = {0, 1}, .streaming = streaming});
}

}  // namespace

Schedule lower(const std::vector<Step>& steps, int64_t in_bytes, Direction direction,
               const LowerOptions& options) {
  const bool forward = direction == Direction::kForward;
  const int64_t laid_out = steps.empty() ? in_bytes : step_out_bytes(steps.back());
  Schedule schedule;
  schedule.in_bytes = forward ? in_bytes : laid_out;
  schedule.out_bytes = forward ? laid_out : in_bytes;
  const bool streaming = schedule.out_bytes >= options.stream_from;

  std::vector<Pass> passes = join(steps);
  if (passes.empty()) add_copy(schedule, streaming);
  if (passes.size() > 1) {
    const Bands bands = cut_into_bands(steps);
    schedule.bands = bands.count;
    if (bands.count > 1) passes = join(bands.steps);
  }
  if (!forward) std::ranges::reverse(passes);
  for (size_t i = 0; i < passes.size(); ++i) {
    const bool last = i + 1 == passes.size();
    const auto between = [](size_t pass) {
      return pass % 2 == 0 ? Place::kFirstBetween : Place::kSecondBetween;
    };
    if (!last) {
      int64_t& bytes = schedule.between_bytes.at(i % 2);
      bytes = std::max(bytes, forward ? passes[i].out_bytes : passes[i].in_bytes);
    }
    const Ends ends = {.from = i == 0 ? Place::kInput : between(i - 1),
                       .to = last ? Place::kOutput : between(i),
                       .streaming = last && streaming,
                       .more = i == 0 && schedule.bands > 1};
    PassLowering(passes[i], direction, ends, schedule).add();
  }
  return schedule;
}

}  // namespace mxfp4
