#include "lib/plan/cut.hpp"

#include <algorithm>

namespace mxfp4 {

std::vector<UnitRange> cut_units(int64_t total, int64_t unit_bytes, int64_t together,
                                 int64_t wanted) {
  const int64_t fit = wanted / std::max<int64_t>(1, unit_bytes);
  const int64_t step = std::max(together, fit / together * together);
  std::vector<UnitRange> ranges;
  for (int64_t first = 0; first < total; first += step) {
    ranges.push_back({first, std::min(step, total - first)});
  }
  return ranges;
}

}  // namespace mxfp4
