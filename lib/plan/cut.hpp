// The one way in which work is cut into jobs.
#pragma once

#include <cstdint>
#include <vector>

namespace mxfp4 {

// Bytes of output that a job aims for: enough to hide a job's own overhead, few enough that several
// jobs fit every budget.
inline constexpr int64_t kJobBytes = int64_t{8} << 20;

// Consecutive units, such as granules of a tensor.
struct UnitRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Cuts `total` units of `unit_bytes` into ranges: as many units as fit `wanted` bytes, in multiples
// of `together` (the last range aside), and `together` units where not even those fit.
[[nodiscard]] std::vector<UnitRange> cut_units(int64_t total, int64_t unit_bytes, int64_t together,
                                               int64_t wanted);

}  // namespace mxfp4
