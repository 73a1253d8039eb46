#include "lib/steps/run_schedule.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "lib/core/overloaded.hpp"
#include "lib/kernels/copy.hpp"
#include "lib/kernels/tiles.hpp"

namespace mxfp4 {
namespace {

// Where the buffers of a band begin.
struct Buffers {
  const std::byte* input;
  std::array<std::byte*, 5> at;  // by place; the input is not written

  [[nodiscard]] const std::byte* read(Address address) const {
    const bool input_place = address.place == Place::kInput;
    return (input_place ? input : at[static_cast<size_t>(address.place)]) + address.offset;
  }
  [[nodiscard]] std::byte* write(Address address) const {
    return at[static_cast<size_t>(address.place)] + address.offset;
  }
};

Buffers buffers_of(const Schedule& schedule, int64_t band, ConstBytes in, MutableBytes out,
                   MutableBytes scratch) {
  const int64_t in_band = schedule.in_bytes / schedule.bands;
  const int64_t out_band = schedule.out_bytes / schedule.bands;
  std::byte* between = scratch.data() + schedule.strip_bytes;
  return {in.data() + band * in_band,
          {nullptr, out.data() + band * out_band, scratch.data(), between,
           between + schedule.between_bytes[0]}};
}

// Rows shorter than this are over before the core's own prefetching has found them: they are
// fetched about this many bytes ahead. What lies behind the last row is fetched in vain.
constexpr int64_t kFetchAhead = 4096;
constexpr int64_t kFetchedLine = 64;

void fetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kFetchedLine) __builtin_prefetch(from + i, 0, 2);
}

// How far ahead rows of these moves are fetched; 0: not at all.
int64_t fetch_distance(const Operation& op, const RowMoves& moves) {
  const bool short_rows =
      moves.bytes >= kFetchedLine && moves.bytes < kFetchAhead && moves.count > 1;
  if (op.from.place != Place::kInput || !short_rows || moves.from_step <= 0) return 0;
  return std::max<int64_t>(1, kFetchAhead / moves.from_step) * moves.from_step;
}

void run_moves(const Schedule& schedule, const Operation& op, const Buffers& buffers) {
  const std::byte* in = buffers.read(op.from);
  std::byte* out = buffers.write(op.to);
  for (const RowMoves& moves : std::span(schedule.moves).subspan(op.moves.first, op.moves.count)) {
    std::byte* to = out + moves.to;
    const int64_t ahead = fetch_distance(op, moves);
    const std::byte* from = in + moves.from;
    for (int64_t i = 0; i < moves.count; ++i, from += moves.from_step, to += moves.to_step) {
      if (ahead > 0) fetch(from + ahead, moves.bytes);
      kernels::copy_bytes(from, moves.bytes, op.streaming, to);
      if (moves.fill == 0) continue;
      std::memset(to + moves.bytes, std::to_integer<int>(op.filling),
                  static_cast<size_t>(moves.fill));
    }
  }
}

void run_kernel(const Schedule& schedule, const Operation& op, const Buffers& buffers,
                bool last_band) {
  const std::byte* in = buffers.read(op.from);
  std::byte* out = buffers.write(op.to);
  const ConstBytes all_in(in, static_cast<size_t>(op.in_bytes));
  const MutableBytes all_out(out, static_cast<size_t>(op.out_bytes));
  std::visit(Overloaded{
                 [&](const kernels::TilePlan& plan) {
                   kernels::Upcoming next;
                   if (op.next && !(op.next->next_band && last_band)) {
                     const auto [first, count] = op.next->runs;
                     next = {buffers.read(op.next->from),
                             std::span(schedule.runs).subspan(first, count), op.next->run_bytes};
                   }
                   kernels::run_tiles(plan, in, next, op.streaming, out);
                 },
                 [&](const UnitLoops& loops) {
                   kernels::permute_units(loops.nest, loops.unit_bits, in, out);
                 },
                 [&](const ElementMap& map) { map.run(all_in, all_out); },
                 [&](const CustomRun& step) { step.run(all_in, op.streaming, all_out); },
             },
             schedule.kernels[*op.kernel]);
}

}  // namespace

void run_schedule(const Schedule& schedule, ConstBytes in, MutableBytes out, MutableBytes scratch) {
  for (int64_t band = 0; band < schedule.bands; ++band) {
    const Buffers buffers = buffers_of(schedule, band, in, out, scratch);
    for (const Operation& op : schedule.operations) {
      if (op.kernel) {
        run_kernel(schedule, op, buffers, band + 1 == schedule.bands);
      } else {
        run_moves(schedule, op, buffers);
      }
    }
  }
  kernels::finish_streaming();
}

}  // namespace mxfp4
