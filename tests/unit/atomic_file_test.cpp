// Files that appear whole.
#include "formats/os/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { fs::create_directories(directory_); }
  ~AtomicFileTest() override { fs::remove_all(directory_); }

  fs::path directory_ = test::scratch_path("atomic_file");
};

TEST_F(AtomicFileTest, PublishesWithTheUsualPermissions) {
  const mode_t before = umask(027);
  AtomicFile(Directory(directory_), "a").commit();
  umask(before);
  EXPECT_EQ(fs::status(directory_ / "a").permissions(), fs::perms{0640});
}

}  // namespace
}  // namespace mxfp4
