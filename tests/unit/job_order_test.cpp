// Jobs of several files take turns; those of one file keep their order, and none is lost.
#include "lib/plan/job_order.hpp"

#include <gtest/gtest.h>

namespace mxfp4 {
namespace {

// Jobs of files 0, 1, ...: as many as `counts` says, numbered by their first granule.
Plan plan_of(const std::vector<int64_t>& counts) {
  Plan plan;
  for (size_t file = 0; file < counts.size(); ++file) {
    for (int64_t i = 0; i < counts[file]; ++i) {
      plan.jobs.push_back({.pieces = {{.file = file, .first_granule = i}}, .cost = 1});
    }
  }
  return plan;
}

std::vector<size_t> files_of(const Plan& plan) {
  std::vector<size_t> files;
  for (const Job& job : plan.jobs) files.push_back(job.pieces.front().file);
  return files;
}

using Files = std::vector<size_t>;

TEST(JobOrder, FilesTakeTurns) {
  Plan plan = plan_of({3, 3, 2, 1});
  interleave_files(plan, 2);
  EXPECT_EQ(files_of(plan), (Files{0, 1, 0, 1, 0, 1, 2, 3, 2}));
}

TEST(JobOrder, OneThreadTakesOneFileAfterAnother) {
  Plan plan = plan_of({2, 2});
  interleave_files(plan, 1);
  EXPECT_EQ(files_of(plan), (Files{0, 0, 1, 1}));
}

TEST(JobOrder, EveryJobRunsInTheOrderOfItsFile) {
  for (int threads : {1, 2, 3, 64}) {
    Plan plan = plan_of({5, 1, 0, 7, 3, 3, 3, 3, 3, 3, 3, 3});
    const size_t jobs = plan.jobs.size();
    interleave_files(plan, threads);
    ASSERT_EQ(plan.jobs.size(), jobs);
    std::vector<int64_t> next(12, 0);
    for (const Job& job : plan.jobs) {
      ASSERT_EQ(job.pieces.size(), 1U);
      EXPECT_EQ(job.pieces[0].first_granule, next[job.pieces[0].file]++);
    }
  }
  Plan nothing;
  interleave_files(nothing, 2);
  EXPECT_TRUE(nothing.jobs.empty());
}

}  // namespace
}  // namespace mxfp4
