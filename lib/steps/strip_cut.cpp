#include "lib/steps/strip_cut.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/overloaded.hpp"
#include "lib/kernels/plan_tiles.hpp"

namespace mxfp4 {
namespace {

// A strip, its output and the rows it is made of fit the second-level cache.
constexpr int64_t kStripBytes = 128 << 10;
// One that a custom step takes whole fits the first: the step passes over it once.
constexpr int64_t kCustomStripBytes = 32 << 10;

}  // namespace

StripCut::StripCut(const Step& step, int64_t row_bytes)
    : step_(step), strip_bytes_(step_in_bytes(step)) {
  if (const auto* permute = std::get_if<Permute>(&step); permute && strip_bytes_ > 0) {
    cut_permute(*permute, row_bytes);
  }
  if (const auto* custom = std::get_if<Custom>(&step); custom && custom->piece_bytes > 0) {
    const int64_t unit = std::lcm(custom->piece_bytes, row_bytes);
    strip_bytes_ = std::max<int64_t>(1, kCustomStripBytes / unit) * unit;
  }
}

int64_t StripCut::out_offset(int64_t offset) const {
  if (std::holds_alternative<Custom>(step_)) return offset;
  int64_t strip = strip_bytes_ == 0 ? 0 : offset / strip_bytes_;
  int64_t out = 0;
  for (size_t i = around_.size(); i-- > 0; strip /= around_[i].size) {
    out += strip % around_[i].size * around_[i].out_bytes;
  }
  return out;
}

int64_t StripCut::out_bytes(int64_t bytes) const {
  return bytes == step_in_bytes(step_) ? step_out_bytes(step_) : bytes;
}

StripKernel StripCut::kernel(Direction direction) const {
  const bool forward = direction == Direction::kForward;
  return std::visit(
      Overloaded{
          [&](const Permute&) { return permute_kernel(axes_, direction); },
          [&](const Recode& s) {
            const Recoding& recoding = *s.recoding;
            return StripKernel{
                ElementMap{recoding.name, forward ? recoding.forward : recoding.inverse}, {}};
          },
          [&](const Custom& s) {
            return StripKernel{CustomRun{s.name, forward ? s.forward : s.inverse}, {}};
          },
          [](const auto&) -> StripKernel { throw Error::internal("rows are not cut into strips"); },
      },
      step_);
}

std::optional<StripKernel> StripCut::spread_kernel(int64_t row_bytes, int64_t stride,
                                                   Direction direction) const {
  const std::optional<Axes> axes = spread_axes(row_bytes, stride);
  if (!axes) return std::nullopt;
  const auto tiled = [](const StripKernel& strip) {
    return std::holds_alternative<kernels::TilePlan>(strip.kernel);
  };
  StripKernel forward = permute_kernel(*axes, Direction::kForward);
  StripKernel inverse = permute_kernel(*axes, Direction::kInverse);
  if (!tiled(forward) || !tiled(inverse)) return std::nullopt;
  return direction == Direction::kForward ? std::move(forward) : std::move(inverse);
}

// The axes of the step in input order.
StripCut::Axes StripCut::axes_of(const Permute& step) {
  Axes axes(step.dims.size());
  int64_t stride = 1;
  for (size_t axis = axes.size(); axis-- > 0; stride *= step.dims[axis]) {
    axes[axis] = {step.dims[axis], stride, 0};
  }
  stride = 1;
  for (size_t i = step.order.size(); i-- > 0;) {
    Axis& axis = axes[static_cast<size_t>(step.order[i])];
    axis.out = stride;
    stride *= axis.size;
  }
  std::erase_if(axes, [](const Axis& axis) { return axis.size == 1; });
  return axes;
}

void StripCut::cut_permute(const Permute& step, int64_t row_bytes) {
  unit_bits_ = unit_bits(step.unit);
  axes_ = axes_of(step);
  while (strip_bytes_ > kStripBytes && !axes_.empty() && cut_first_axis(row_bytes)) {
  }
}

bool StripCut::cut_first_axis(int64_t row_bytes) {
  // The odd part goes first, so that the strips keep the powers of two that tiles need.
  int64_t parts = axes_.front().size;
  while (parts % 2 == 0) parts /= 2;
  if (parts == 1) parts = 2;
  Axes rest = axes_;
  rest.front().size /= parts;
  const int64_t out_bits = rest.front().size * rest.front().out * unit_bits_;
  if (rest.front().size == 1) rest.erase(rest.begin());
  // Every strip writes whole bytes: its innermost output axis has stride 1 and pairs nibbles.
  const bool whole_bytes = std::ranges::any_of(rest, [&](const Axis& axis) {
    return axis.out == 1 && (unit_bits_ != 4 || axis.size % 2 == 0);
  });
  const int64_t bytes = strip_bytes_ / parts;
  if (bytes % row_bytes != 0 || out_bits % 8 != 0 || !whole_bytes) return false;
  around_.push_back({parts, out_bits / 8});
  axes_ = std::move(rest);
  strip_bytes_ = bytes;
  return true;
}

std::optional<StripCut::Axes> StripCut::spread_axes(int64_t row_bytes, int64_t stride) const {
  const int64_t row_units = row_bytes * 8 / unit_bits_;
  const int64_t stride_units = stride * 8 / unit_bits_;
  if (!std::holds_alternative<Permute>(step_)) return std::nullopt;
  Axes axes;
  for (const Axis& axis : axes_) {
    // An axis that covers columns and rows becomes two. Rows of 8 units that lie 10 apart: of an
    // axis of 16 units at distance 2, 4 units stay in a row, and the other factor, 4 rows, is
    // walked at distance 10.
    const bool in_row = axis.in < row_units;
    const int64_t inner = in_row ? std::min(axis.size, row_units / axis.in) : 1;
    const bool whole =
        in_row ? axis.size % inner == 0 && row_units % axis.in == 0 : axis.in % row_units == 0;
    if (!whole) return std::nullopt;
    if (inner > 1) axes.push_back({inner, axis.in, axis.out});
    if (inner < axis.size) {
      const int64_t in = axis.in * inner / row_units * stride_units;
      axes.push_back({axis.size / inner, in, axis.out * inner});
    }
  }
  return axes;
}

// Loops in the order of `write`, neighbours on both sides joined.
kernels::LoopNest StripCut::nest_of(Axes axes, int64_t Axis::*read, int64_t Axis::*write) {
  std::ranges::sort(axes, std::greater(), write);
  kernels::LoopNest nest;
  for (const Axis& axis : axes) kernels::add_loop(nest, axis.size, axis.*read, axis.*write);
  if (nest.size.empty()) nest = {{1}, {1}, {1}};
  return nest;
}

// The runs of consecutive bytes that the axes cover on one side, ascending.
void StripCut::find_runs(Axes axes, int64_t Axis::*side, int64_t unit_bits, StripKernel& kernel) {
  std::ranges::sort(axes, {}, side);
  int64_t run = 1;
  size_t axis = 0;
  for (; axis < axes.size() && axes[axis].*side == run; ++axis) run *= axes[axis].size;
  std::vector<int64_t>& starts = kernel.runs;
  starts = {0};
  for (; axis < axes.size(); ++axis) {
    const size_t count = starts.size();
    for (int64_t i = 1; i < axes[axis].size; ++i) {
      for (size_t at = 0; at < count; ++at) {
        starts.push_back(starts[at] + i * (axes[axis].*side) * unit_bits / 8);
      }
    }
  }
  kernel.run_bytes = run * unit_bits / 8;
}

StripKernel StripCut::permute_kernel(const Axes& axes, Direction direction) const {
  const bool forward = direction == Direction::kForward;
  const auto read = forward ? &Axis::in : &Axis::out;
  const auto write = forward ? &Axis::out : &Axis::in;
  const kernels::LoopNest nest = nest_of(axes, read, write);
  std::optional<kernels::TilePlan> plan = kernels::tile_plan(nest, unit_bits_);
  if (!plan) return {UnitLoops{nest, unit_bits_}, {}};
  StripKernel made = {*std::move(plan), {}};
  find_runs(axes, read, unit_bits_, made);
  return made;
}

}  // namespace mxfp4
