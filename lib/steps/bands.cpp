#include "lib/steps/bands.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include "lib/core/overloaded.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kBandBytes = 128 << 10;
constexpr int64_t kLine = 64;

// The most equal parts of the input that give equal parts of the output.
int64_t most_parts(const Step& step) {
  if (step_in_bytes(step) == 0) return 1;
  return std::visit(Overloaded{
                        [](const Permute& s) {
                          const bool rows = s.dims.size() > 1 && s.order.front() == 0;
                          return rows ? s.dims.front() : int64_t{1};
                        },
                        [](const GatherRows&) { return int64_t{1}; },
                        [](const PadMatrix& s) { return s.rows == s.out_rows ? s.rows : 1; },
                        [](const Recode& s) { return s.count; },
                        [](const Custom& s) {
                          const bool pieces = s.piece_bytes > 0 && s.in_bytes % s.piece_bytes == 0;
                          return pieces ? s.in_bytes / s.piece_bytes : 1;
                        },
                    },
                    step);
}

// One of `count` parts, a divisor of most_parts().
Step part_of(Step step, int64_t count) {
  std::visit(Overloaded{
                 [&](Permute& s) { s.dims.front() /= count; },
                 [&](GatherRows&) {},
                 [&](PadMatrix& s) {
                   s.rows /= count;
                   s.out_rows /= count;
                 },
                 [&](Recode& s) { s.count /= count; },
                 [&](Custom& s) {
                   s.in_bytes /= count;
                   s.out_bytes /= count;
                 },
             },
             step);
  return step;
}

}  // namespace

Bands cut_into_bands(const std::vector<Step>& steps) {
  int64_t parts = 0;
  int64_t largest = 0;
  int64_t unit = 0;  // divides every size
  for (const Step& step : steps) {
    parts = std::gcd(parts, most_parts(step));
    for (int64_t bytes : {step_in_bytes(step), step_out_bytes(step)}) {
      largest = std::max(largest, bytes);
      unit = std::gcd(unit, bytes);
    }
  }
  const int64_t least = std::max<int64_t>(1, (largest + kBandBytes - 1) / kBandBytes);
  for (int64_t count = least; count <= std::min(parts, 16 * least); ++count) {
    if (parts % count != 0 || unit % (count * kLine) != 0) continue;
    Bands bands = {count, {}};
    for (const Step& step : steps) bands.steps.push_back(part_of(step, count));
    return bands;
  }
  return {1, steps};
}

}  // namespace mxfp4
