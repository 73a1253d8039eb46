// Strips of permutations and of custom steps.
#include "lib/steps/strip_work.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/kernels/permute.hpp"
#include "lib/kernels/tile_plan.hpp"
#include "lib/kernels/tiles.hpp"

namespace mxfp4 {
namespace {

// A strip, its output and the rows it is made of fit the second-level cache.
constexpr int64_t kStripBytes = 128 << 10;

struct Axis {
  int64_t size, in, out;  // strides in units
};

// The axes of the step in input order.
std::vector<Axis> axes_of(const Permute& step) {
  std::vector<Axis> axes(step.dims.size());
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

int64_t units_of(const std::vector<Axis>& axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t{1},
                         [](int64_t units, const Axis& axis) { return units * axis.size; });
}

// Loops in the order of `write`, neighbours on both sides joined.
kernels::LoopNest nest_of(std::vector<Axis> axes, int64_t Axis::*read, int64_t Axis::*write) {
  std::ranges::sort(axes, std::greater(), write);
  kernels::LoopNest nest;
  for (const Axis& axis : axes) kernels::add_loop(nest, axis.size, axis.*read, axis.*write);
  if (nest.size.empty()) nest = {{1}, {1}, {1}};
  return nest;
}

// The runs of consecutive bytes that the axes cover on one side, ascending, and their length.
std::pair<std::vector<int64_t>, int64_t> runs_of(std::vector<Axis> axes, int64_t Axis::*side,
                                                 int64_t unit_bits) {
  std::ranges::sort(axes, {}, side);
  int64_t run = 1;
  size_t axis = 0;
  for (; axis < axes.size() && axes[axis].*side == run; ++axis) run *= axes[axis].size;
  std::vector<int64_t> starts = {0};
  for (; axis < axes.size(); ++axis) {
    const size_t count = starts.size();
    for (int64_t i = 1; i < axes[axis].size; ++i) {
      for (size_t at = 0; at < count; ++at) {
        starts.push_back(starts[at] + i * (axes[axis].*side) * unit_bits / 8);
      }
    }
  }
  return {std::move(starts), run * unit_bits / 8};
}

// Every strip writes whole bytes: its innermost output axis has stride 1 and pairs nibbles.
bool can_stand_alone(const std::vector<Axis>& axes, int64_t unit_bits) {
  return std::ranges::any_of(axes, [&](const Axis& axis) {
    return axis.out == 1 && (unit_bits != 4 || axis.size % 2 == 0);
  });
}

class StripPermute : public StripWork {
 public:
  StripPermute(const Permute& step, int64_t row_bytes);

  [[nodiscard]] int64_t strip_bytes() const override { return strip_bytes_; }

  void forward(int64_t offset, ConstBytes strip, StripHints hints,
               MutableBytes out) const override {
    run(ways_.forward, hints, hints.more ? strip.data() + strip_bytes_ : nullptr, strip.data(),
        out.data() + out_offset(offset));
  }
  void inverse(int64_t offset, ConstBytes in, StripHints hints, MutableBytes strip) const override {
    const std::byte* next = hints.more ? in.data() + out_offset(offset + strip_bytes_) : nullptr;
    run(ways_.inverse, hints, next, in.data() + out_offset(offset), strip.data());
  }

  bool spread_rows(int64_t row_bytes, int64_t stride) override;
  void forward_spread(int64_t offset, const std::byte* rows, const std::byte* next, bool streaming,
                      MutableBytes out) const override {
    run(spread_->forward, {streaming, false, {}}, next, rows, out.data() + out_offset(offset));
  }
  void inverse_spread(int64_t offset, ConstBytes in, bool streaming, std::optional<int64_t> next,
                      std::byte* rows) const override {
    const std::byte* upcoming = next ? in.data() + out_offset(*next) : nullptr;
    run(spread_->inverse, {streaming, false, {}}, upcoming, in.data() + out_offset(offset), rows);
  }
  [[nodiscard]] bool spread_writes_parts() const override {
    return spread_ && !spread_->inverse.plan->stage;
  }

 private:
  struct Way {
    kernels::LoopNest nest;
    std::optional<kernels::TilePlan> plan;
    std::vector<int64_t> runs;  // of consecutive bytes that a strip reads
    int64_t run_bytes = 0;
  };
  struct Ways {
    Way forward, inverse;
  };
  // A loop around the strips, outermost first.
  struct Around {
    int64_t size;
    int64_t out_bytes;  // of a step along it
  };

  // Takes part of the first axis out of `axes` and puts it around; false when a strip could then
  // not stand alone.
  bool cut(std::vector<Axis>& axes, int64_t row_bytes);
  [[nodiscard]] Ways ways_of(const std::vector<Axis>& axes) const;
  [[nodiscard]] int64_t out_offset(int64_t offset) const;
  // `next` is where the next strip will be read; null when nobody knows.
  void run(const Way& way, const StripHints& hints, const std::byte* next, const std::byte* in,
           std::byte* out) const;

  int64_t unit_bits_;
  int64_t strip_bytes_;
  std::vector<Around> around_;
  std::vector<Axis> axes_;  // of a strip
  Ways ways_;
  std::optional<Ways> spread_;
};

StripPermute::StripPermute(const Permute& step, int64_t row_bytes)
    : unit_bits_(unit_bits(step.unit)) {
  axes_ = axes_of(step);
  strip_bytes_ = units_of(axes_) * unit_bits_ / 8;
  while (strip_bytes_ > kStripBytes && !axes_.empty() && cut(axes_, row_bytes)) {
  }
  ways_ = ways_of(axes_);
}

StripPermute::Ways StripPermute::ways_of(const std::vector<Axis>& axes) const {
  Ways ways;
  ways.forward.nest = nest_of(axes, &Axis::in, &Axis::out);
  ways.inverse.nest = nest_of(axes, &Axis::out, &Axis::in);
  for (Way* way : {&ways.forward, &ways.inverse}) {
    way->plan = kernels::tile_plan(way->nest, unit_bits_);
    if (!way->plan) continue;  // runs may be single bytes then, and nobody asks for them
    const bool forward = way == &ways.forward;
    std::tie(way->runs, way->run_bytes) =
        runs_of(axes, forward ? &Axis::in : &Axis::out, unit_bits_);
  }
  return ways;
}

bool StripPermute::spread_rows(int64_t row_bytes, int64_t stride) {
  const int64_t row_units = row_bytes * 8 / unit_bits_;
  const int64_t stride_units = stride * 8 / unit_bits_;
  std::vector<Axis> axes;
  for (const Axis& axis : axes_) {
    // An axis of columns and rows is two.
    int64_t inner = axis.in < row_units ? std::min(axis.size, row_units / axis.in) : 1;
    if (axis.in < row_units ? axis.size % inner != 0 || row_units % axis.in != 0
                            : axis.in % row_units != 0) {
      return false;
    }
    if (inner > 1) axes.push_back({inner, axis.in, axis.out});
    if (inner < axis.size) {
      const int64_t in = axis.in * inner / row_units * stride_units;
      axes.push_back({axis.size / inner, in, axis.out * inner});
    }
  }
  Ways ways = ways_of(axes);
  if (!ways.forward.plan || !ways.inverse.plan) return false;
  spread_ = std::move(ways);
  return true;
}

bool StripPermute::cut(std::vector<Axis>& axes, int64_t row_bytes) {
  // The odd part goes first, so that the strips keep the powers of two that tiles need.
  int64_t parts = axes.front().size;
  while (parts % 2 == 0) parts /= 2;
  if (parts == 1) parts = 2;
  std::vector<Axis> rest = axes;
  rest.front().size /= parts;
  const int64_t out_bits = rest.front().size * rest.front().out * unit_bits_;
  if (rest.front().size == 1) rest.erase(rest.begin());
  const int64_t bytes = strip_bytes_ / parts;
  if (bytes % row_bytes != 0 || out_bits % 8 != 0 || !can_stand_alone(rest, unit_bits_)) {
    return false;
  }
  around_.push_back({parts, out_bits / 8});
  axes = std::move(rest);
  strip_bytes_ = bytes;
  return true;
}

int64_t StripPermute::out_offset(int64_t offset) const {
  int64_t strip = strip_bytes_ == 0 ? 0 : offset / strip_bytes_;
  int64_t out = 0;
  for (size_t i = around_.size(); i-- > 0; strip /= around_[i].size) {
    out += strip % around_[i].size * around_[i].out_bytes;
  }
  return out;
}

void StripPermute::run(const Way& way, const StripHints& hints, const std::byte* next,
                       const std::byte* in, std::byte* out) const {
  if (way.plan && kernels::tiles_supported()) {
    const kernels::Upcoming strip = {next, way.runs, way.run_bytes};
    kernels::run_tiles(*way.plan, {hints.streaming, next == nullptr ? hints.next : strip}, in, out);
  } else if (unit_bits_ == 4) {
    kernels::permute_nibbles(way.nest, in, out);
  } else {
    kernels::permute_bytes(way.nest, unit_bits_ / 8, in, out);
  }
}

// Strips of whole pieces of a custom step.
class StripCustom : public StripWork {
 public:
  StripCustom(Custom step, int64_t row_bytes) : step_(std::move(step)) {
    const int64_t unit = std::lcm(step_.piece_bytes, row_bytes);
    strip_bytes_ = std::max<int64_t>(1, kStripBytes / unit) * unit;
  }

  [[nodiscard]] int64_t strip_bytes() const override { return strip_bytes_; }

  void forward(int64_t offset, ConstBytes strip, StripHints hints,
               MutableBytes out) const override {
    step_.forward(strip, hints.streaming, out.subspan(static_cast<size_t>(offset), strip.size()));
  }
  void inverse(int64_t offset, ConstBytes in, StripHints hints, MutableBytes strip) const override {
    step_.inverse(in.subspan(static_cast<size_t>(offset), strip.size()), hints.streaming, strip);
  }

 private:
  Custom step_;
  int64_t strip_bytes_;
};

// A step without parts: one strip.
class WholeStep : public StripWork {
 public:
  explicit WholeStep(Step step) : step_(std::move(step)) {}

  [[nodiscard]] int64_t strip_bytes() const override { return step_in_bytes(step_); }

  void forward(int64_t, ConstBytes strip, StripHints, MutableBytes out) const override {
    step_forward(step_, strip, out);
  }
  void inverse(int64_t, ConstBytes in, StripHints, MutableBytes strip) const override {
    step_inverse(step_, in, strip);
  }

 private:
  Step step_;
};

}  // namespace

bool StripWork::spread_rows(int64_t, int64_t) { return false; }
void StripWork::forward_spread(int64_t, const std::byte*, const std::byte*, bool,
                               MutableBytes) const {
  throw Error::internal("this step has no spread rows");
}
void StripWork::inverse_spread(int64_t, ConstBytes, bool, std::optional<int64_t>,
                               std::byte*) const {
  throw Error::internal("this step has no spread rows");
}

std::unique_ptr<StripWork> make_strip_work(const Step& step, int64_t row_bytes) {
  if (const auto* permute = std::get_if<Permute>(&step); permute && step_in_bytes(step) > 0) {
    return std::make_unique<StripPermute>(*permute, row_bytes);
  }
  if (const auto* custom = std::get_if<Custom>(&step); custom && custom->piece_bytes > 0) {
    return std::make_unique<StripCustom>(*custom, row_bytes);
  }
  return std::make_unique<WholeStep>(step);
}

}  // namespace mxfp4
