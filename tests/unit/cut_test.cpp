// How work is cut into jobs, and that each job keeps its buffers from stage to stage.
#include "lib/plan/cut.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lib/exec/job_pipeline.hpp"

namespace mxfp4 {
namespace {

std::vector<int64_t> counts(const std::vector<UnitRange>& ranges) {
  std::vector<int64_t> out;
  int64_t next = 0;
  for (const UnitRange& range : ranges) {
    EXPECT_EQ(range.first, next);
    next += range.count;
    out.push_back(range.count);
  }
  return out;
}

TEST(Cut, FillsTheWantedBytesWithWholeGroups) {
  EXPECT_EQ(counts(cut_units(10, 100, 1, 350)), (std::vector<int64_t>{3, 3, 3, 1}));
  EXPECT_EQ(counts(cut_units(10, 100, 4, 900)), (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(counts(cut_units(10, 100, 4, 50)), (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(counts(cut_units(3, 0, 1, 1)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_TRUE(cut_units(0, 100, 1, 350).empty());
}

TEST(JobPipeline, KeepsAJobsBuffersFromStageToStage) {
  std::vector<int64_t> jobs(100);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i] = static_cast<int64_t>(i);
  for (const int threads : {1, 4}) {
    int64_t placed = 0;
    std::vector<int64_t> finished;
    run_jobs<int64_t, std::vector<int64_t>>(
        jobs, limits_for(1000, 100, threads),
        {.read = [](const int64_t& job, std::vector<int64_t>& own) { own = {job}; },
         .work = [](const int64_t&, std::vector<int64_t>& own) { own.push_back(own[0] * 2); },
         .place = [&](const int64_t& job, std::vector<int64_t>&) { EXPECT_EQ(job, placed++); },
         .finish = [&](const int64_t&, std::vector<int64_t>& own) { finished.push_back(own[1]); }});
    ASSERT_EQ(finished.size(), jobs.size());
    for (const int64_t job : jobs) EXPECT_EQ(finished[static_cast<size_t>(job)], 2 * job);
  }
}

TEST(JobPipeline, RunsWithoutWork) {
  const std::vector<int> jobs{1, 2, 3};
  int sum = 0;
  run_jobs<int, int>(jobs, {2, 2}, {.finish = [&](const int& job, int&) { sum += job; }});
  EXPECT_EQ(sum, 6);
}

}  // namespace
}  // namespace mxfp4
