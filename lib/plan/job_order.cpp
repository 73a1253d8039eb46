#include "lib/plan/job_order.hpp"

#include <algorithm>
#include <utility>

namespace mxfp4 {
namespace {

constexpr size_t kMostFiles = 16;

// Jobs [begin, end), which fill the same files.
struct Run {
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Run> runs_of(const std::vector<Job>& jobs) {
  std::vector<Run> runs;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const bool same = i > 0 && jobs[i].pieces.front().file == jobs[i - 1].pieces.front().file;
    if (!same) runs.push_back({i, i});
    runs.back().end = i + 1;
  }
  return runs;
}

// Files of one model are equally large and end together, so the last ones would be too few: 36
// files go as 3 times 12, not as 16, 16 and 4.
size_t files_together(size_t files, int threads) {
  const size_t most = std::min(static_cast<size_t>(std::max(threads, 1)), kMostFiles);
  const size_t rounds = std::max<size_t>((files + most - 1) / most, 1);
  return (files + rounds - 1) / rounds;
}

}  // namespace

void interleave_files(Plan& plan, int threads) {
  const std::vector<Run> runs = runs_of(plan.jobs);
  const size_t together = files_together(runs.size(), threads);
  std::vector<Run> open;
  size_t next = 0;
  std::vector<Job> order;
  order.reserve(plan.jobs.size());
  while (order.size() < plan.jobs.size()) {
    while (open.size() < together && next < runs.size()) open.push_back(runs[next++]);
    for (Run& run : open) order.push_back(std::move(plan.jobs[run.begin++]));
    std::erase_if(open, [](const Run& run) { return run.begin == run.end; });
  }
  plan.jobs = std::move(order);
}

}  // namespace mxfp4
