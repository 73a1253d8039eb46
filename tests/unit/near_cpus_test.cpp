// CPUs near a PCI device, in a made-up /sys; and a thread that runs only on some of its CPUs.
#include "formats/os/near_cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using Cpus = std::vector<int>;

Cpus near_of(const std::string& list) {
  const fs::path root = test::scratch_path("near_cpus");
  const fs::path device = root / "sys/bus/pci/devices/0000:3b:00.0";
  fs::create_directories(device);
  std::ofstream(device / "local_cpulist") << list;
  Cpus cpus = cpus_near(root, "0000:3B:00.0");
  fs::remove_all(root);
  return cpus;
}

TEST(NearCpus, RangesAndSingleOnes) {
  EXPECT_EQ(near_of("0-2,8,10-11\n"), (Cpus{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(near_of("7\n"), (Cpus{7}));
}

TEST(NearCpus, NothingWhereTheSystemDoesNotSay) {
  EXPECT_EQ(near_of("\n"), Cpus{});
  EXPECT_EQ(near_of("none\n"), Cpus{});
  EXPECT_EQ(cpus_near("/nonexistent", "0000:3B:00.0"), Cpus{});
}

TEST(NearCpus, ALongRangeEndsWhereTheSystemsSetsDo) {
  EXPECT_EQ(near_of("1020-999999999\n").back(), CPU_SETSIZE - 1);
}

TEST(NearCpus, AThreadStaysOnThoseThatItMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  std::jthread([&] {
    cpu_set_t after;
    run_on({});
    ::sched_getaffinity(0, sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&after, &before));
    run_on({first});
    ::sched_getaffinity(0, sizeof after, &after);
    EXPECT_EQ(CPU_COUNT(&after), 1);
    EXPECT_TRUE(CPU_ISSET(first, &after));
  }).join();
}

}  // namespace
}  // namespace mxfp4
