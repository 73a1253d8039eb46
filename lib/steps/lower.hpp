// Makes the schedule of a list of steps: joins steps where that saves a pass over memory, cuts the
// rest into strips and bands that stay in the second-level cache, and sets what is fetched ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/steps/schedule.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

struct LowerOptions {
  // Outputs at least this large are streamed past the caches, which could not hold them.
  int64_t stream_from = int64_t{4} << 20;
};

// The schedule that runs `steps`, or undoes them, on `in_bytes` loaded bytes. It gives what
// step_forward() gives for each in turn, or step_inverse() for each from the last.
[[nodiscard]] Schedule lower(const std::vector<Step>& steps, int64_t in_bytes, Direction direction,
                             const LowerOptions& options = {});

}  // namespace mxfp4
