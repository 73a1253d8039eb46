#include "formats/conversion/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

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
  // Schedules that do not fit are not made: the message then gives their bound.
  const int64_t made = left < 0 ? 0 : schedule_bytes(memory.outputs, memory.direction, left).sum();
  if (left < 0 || made > left) {
    refuse(limits, memory.job_bytes + most_schedule_bytes(memory.outputs).sum());
  }
}

PipelineLimits jobs_in_flight(const RunLimits& limits, const RunMemory& memory) {
  const ScheduleBytes schedules = schedule_bytes(memory.outputs, memory.direction);
  return limits_for(limits.memory - schedules.tables, memory.job_bytes + schedules.scratch,
                    limits.threads);
}

}  // namespace mxfp4
