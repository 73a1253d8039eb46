// CPU quotas of cgroups, in a made-up /proc and /sys.
#include "formats/os/available_threads.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

class AvailableThreads : public testing::Test {
 protected:
  ~AvailableThreads() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] std::optional<int64_t> cpus() const { return cgroup_cpus(root_); }

  fs::path root_ = test::scratch_path("available_threads");
};

TEST_F(AvailableThreads, NoQuota) {
  EXPECT_EQ(cpus(), std::nullopt);
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), std::nullopt);
  put("sys/fs/cgroup/cpu.max", "0 0\n");
  EXPECT_EQ(cpus(), std::nullopt);
}

TEST_F(AvailableThreads, InANamespace) {
  put("proc/self/cgroup", "1:cpu:/elsewhere\n0::/\n");
  put("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpus(), 2);
  put("proc/self/cgroup", "0::/../beside\n");
  EXPECT_EQ(cpus(), 2);
}

TEST_F(AvailableThreads, TheSmallestQuotaOnTheWayUp) {
  put("proc/self/cgroup", "0::/system.slice/job.service\n");
  put("sys/fs/cgroup/system.slice/job.service/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpus(), 8);
  put("sys/fs/cgroup/system.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpus(), 3);
  put("sys/fs/cgroup/system.slice/job.service/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpus(), 1);
  put("sys/fs/cgroup/system.slice/other.service/cpu.max", "1000 100000\n");
  put("sys/fs/cgroup/system.slice/job.service/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), 3);
}

}  // namespace
}  // namespace mxfp4
