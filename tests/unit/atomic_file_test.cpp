// Files that appear whole, and the directories that they lie in.
#include "formats/os/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "lib/core/error.hpp"
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

TEST_F(AtomicFileTest, MakesDirectoriesThatAreMissing) {
  MadeDirectories made;
  made.make(directory_ / "a/b/../c/");
  EXPECT_TRUE(fs::is_directory(directory_ / "a/b"));
  EXPECT_TRUE(fs::is_directory(directory_ / "a/c"));
  AtomicFile(Directory(directory_ / "a"), "file").commit();
  try {
    made.make(directory_ / "a/file/below");
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutput);
    EXPECT_NE(std::string(error.what()).find("below: cannot create: Not a directory"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace mxfp4
