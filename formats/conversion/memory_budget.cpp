#include "formats/conversion/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Schedules whose bound is at most this are made, so that the message gives the exact number.
// Larger ones may be too large to be made, and the message gives the bound.
constexpr int64_t kSmallSchedules = kLeastMemory;

[[noreturn]] void refuse(const RunLimits& limits, int64_t bytes) {
  const int64_t needed = (bytes + kMiB - 1) / kMiB;
  throw Error::usage(
      fmt::format("--memory: {} MiB; the least part of this model that can be worked "
                  "on takes {} MiB",
                  limits.memory / kMiB, needed))
      .hint(fmt::format("--memory {}MiB", needed));
}

}  // namespace

void require_memory(const RunLimits& limits, const RunMemory& memory) {
  if (!limits.memory_fixed) return;
  const int64_t left = std::max(limits.memory, kLeastMemory) - memory.job_bytes;
  const int64_t most = most_schedule_bytes(memory.outputs).sum();
  const bool small = most <= kSmallSchedules;
  if (left < 0 && !small) refuse(limits, memory.job_bytes + most);
  const int64_t enough = small ? std::numeric_limits<int64_t>::max() : left;
  const int64_t made = schedule_bytes(memory.outputs, memory.direction, enough).sum();
  if (made > left) refuse(limits, memory.job_bytes + (small ? made : most));
}

PipelineLimits jobs_in_flight(const RunLimits& limits, const RunMemory& memory) {
  const ScheduleBytes schedules = schedule_bytes(memory.outputs, memory.direction);
  return limits_for(limits.memory - schedules.tables, memory.job_bytes + schedules.scratch,
                    limits.threads);
}

}  // namespace mxfp4
