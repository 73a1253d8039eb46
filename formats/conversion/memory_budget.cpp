#include "formats/conversion/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"

namespace mxfp4 {

void require_memory(const RunLimits& limits, int64_t job_cost) {
  if (!limits.memory_fixed || job_cost <= std::max(limits.memory, kLeastMemory)) return;
  constexpr int64_t kMiB = int64_t{1} << 20;
  const int64_t needed = (job_cost + kMiB - 1) / kMiB;
  throw Error::usage(
      fmt::format("--memory: {} MiB; the least part of this model that can be worked "
                  "on takes {} MiB",
                  limits.memory / kMiB, needed))
      .hint(fmt::format("--memory {}MiB", needed));
}

}  // namespace mxfp4
