// Files that appear whole, on file systems that cannot do everything.
#include "formats/os/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lib/core/error.hpp"
#include "tests/unit/scratch_path.hpp"

namespace {

int fchmod_error = 0;  // 0: none

}  // namespace

// Replaces the C library's function in the whole test program.
extern "C" int fchmod(int descriptor, mode_t mode) noexcept {
  if (fchmod_error == 0) return static_cast<int>(syscall(SYS_fchmod, descriptor, mode));
  errno = fchmod_error;
  return -1;
}

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { fs::create_directories(directory_); }
  ~AtomicFileTest() override {
    fchmod_error = 0;
    fs::remove_all(directory_);
  }

  fs::path directory_ = test::scratch_path("atomic_file");
};

TEST_F(AtomicFileTest, PublishesWithTheUsualPermissions) {
  const mode_t before = umask(027);
  write_file_atomically(directory_ / "a", "text");
  umask(before);
  EXPECT_EQ(fs::status(directory_ / "a").permissions(), fs::perms{0640});
}

TEST_F(AtomicFileTest, FileSystemsWithoutModesWillDo) {
  for (const int error : {EPERM, ENOTSUP, ENOSYS, EINVAL}) {
    fchmod_error = error;
    write_file_atomically(directory_ / "a", "text");
    EXPECT_TRUE(fs::remove(directory_ / "a")) << error;
  }
}

TEST_F(AtomicFileTest, NothingIsLeftWhenTheModeCannotBeSet) {
  fchmod_error = EIO;
  try {
    write_file_atomically(directory_ / "a", "text");
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutput);
    EXPECT_NE(std::string(error.what()).find("cannot set permissions: Input/output error"),
              std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(fs::is_empty(directory_));
}

}  // namespace
}  // namespace mxfp4
