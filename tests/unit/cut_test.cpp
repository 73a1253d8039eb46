// How work is cut into jobs, and jobs without a stage of work.
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

TEST(JobPipeline, RunsWithoutWork) {
  const std::vector<int> jobs{1, 2, 3};
  int sum = 0;
  run_jobs<int, int>(jobs, {2, 2}, {.finish = [&](const int& job, int&) { sum += job; }});
  EXPECT_EQ(sum, 6);
}

}  // namespace
}  // namespace mxfp4
