// The pipeline: order, bounds, and what happens when a stage throws.
#include "lib/exec/pipeline.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mxfp4 {
namespace {

TEST(Pipeline, AnExceptionReachesTheCaller) {
  for (int threads : {1, 3}) {
    for (int stage : {0, 1, 2, 3}) {
      const auto step = [&](int at) {
        return [stage, at](int64_t job, int64_t) {
          if (stage == at && job == 7) throw std::runtime_error("job 7");
        };
      };
      EXPECT_THROW(
          run_pipeline(50, {threads, 4},
                       {.work = step(0), .place = step(1), .store = step(2), .finish = step(3)}),
          std::runtime_error);
    }
  }
}

// Jobs of very unequal length: whichever thread is late, serial stages keep the order, and a token
// is one job's at a time.
TEST(Pipeline, UnequalJobsKeepTheirOrderAndTheirBuffers) {
  for (int64_t tokens : {2, 3, 7}) {
    std::vector<std::atomic<int64_t>> owner(static_cast<size_t>(tokens));
    for (auto& one : owner) one = -1;
    const auto owned = [&](int64_t job, int64_t token) {
      EXPECT_EQ(owner[static_cast<size_t>(token)], job);
      for (int64_t spin = job * 7919 % 13 * 1000; spin > 0; --spin) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    };
    int64_t places = 0;
    int64_t finishes = 0;
    run_pipeline(2000, {5, tokens},
                 {.work =
                      [&](int64_t job, int64_t token) {
                        EXPECT_EQ(owner[static_cast<size_t>(token)].exchange(job), -1);
                        owned(job, token);
                      },
                  .place =
                      [&](int64_t job, int64_t token) {
                        EXPECT_EQ(places++, job);
                        owned(job, token);
                      },
                  .store = owned,
                  .finish =
                      [&](int64_t job, int64_t token) {
                        EXPECT_EQ(finishes++, job);
                        owned(job, token);
                        owner[static_cast<size_t>(token)] = -1;
                      }});
    EXPECT_EQ(finishes, 2000);
  }
}

TEST(Pipeline, StagesOfSeveralJobsRunAtOnce) {
  std::atomic<int> inside{0};
  bool met = false;
  run_pipeline(2, {2, 2},
               {.work =
                    [&](int64_t, int64_t) {
                      // Each waits for the other, for ten seconds at most.
                      ++inside;
                      for (int i = 0; i < 10000 && inside < 2; ++i) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      }
                    },
                .finish = [&](int64_t, int64_t) { met = inside == 2; }});
  EXPECT_TRUE(met);
}

TEST(Pipeline, NothingRunsAfterAnException) {
  std::atomic<bool> returned{false};
  for (int round = 0; round < 50; ++round) {
    returned = false;
    try {
      run_pipeline(100, {4, 6},
                   {.work =
                        [&](int64_t job, int64_t) {
                          EXPECT_FALSE(returned);
                          if (job == round) throw std::runtime_error("enough");
                        },
                    .finish = [&](int64_t job, int64_t) { EXPECT_LT(job, round); }});
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error&) {
      returned = true;
    }
  }
}

TEST(Pipeline, NoJobsIsFine) {
  const auto never = [](int64_t, int64_t) { FAIL(); };
  run_pipeline(0, {2, 2}, {.work = never, .finish = never});
}

TEST(Pipeline, TokensFollowTheBudget) {
  EXPECT_EQ(tokens_for(100, 1000, 2), 1);  // at least one
  EXPECT_EQ(tokens_for(100, 30, 2), 3);
  EXPECT_EQ(tokens_for(int64_t{1} << 40, 1, 2), 4);  // enough to keep two workers busy
}

TEST(Pipeline, TheDefaultBudgetGrowsWithTheThreads) {
  EXPECT_EQ(default_memory(1), 256 << 20);
  EXPECT_EQ(default_memory(4), 256 << 20);
  EXPECT_EQ(default_memory(16), 1 << 30);
}

}  // namespace
}  // namespace mxfp4
