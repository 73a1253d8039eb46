// Threads that are kept from one task to the next.
#include "lib/exec/team.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace mxfp4 {
namespace {

TEST(Team, EveryOtherThreadDoesEveryTaskOnce) {
  for (const int threads : {1, 2, 7}) {
    std::atomic<int> entered{0};
    std::atomic<int> calls{0};
    {
      Team team(threads, [&] { ++entered; });
      for (int task = 1; task <= 200; ++task) {
        team.start([&] { ++calls; });
        team.join();
        ASSERT_EQ(calls, (threads - 1) * task);
      }
    }
    EXPECT_EQ(entered, threads - 1);
  }
}

TEST(Team, EndsWithoutATask) {
  const Team team(5, [] {});
}

}  // namespace
}  // namespace mxfp4
