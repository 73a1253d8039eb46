#include "formats/os/file_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <system_error>

namespace mxfp4 {

namespace fs = std::filesystem;

std::optional<FileIdentity> identity_of(const fs::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

std::optional<FileState> state_of(const fs::path& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return std::nullopt;
  return FileState{{found.st_dev, found.st_ino},
                   found.st_size,
                   int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
}

bool lies_in(const fs::path& path, const fs::path& directory) {
  const auto wanted = identity_of(directory);
  std::error_code error;
  fs::path at = fs::weakly_canonical(path, error);
  if (!wanted || error) return false;
  for (; !at.empty(); at = at.parent_path()) {
    if (identity_of(at) == wanted) return true;
    if (at == at.parent_path()) break;
  }
  return false;
}

bool is_mount_point(const fs::path& directory) {
  struct statx found {};
  if (statx(AT_FDCWD, directory.c_str(), 0, 0, &found) == 0 &&
      (found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  // Kernels before 5.8 do not say. The comparison misses a bind mount of the same file system,
  // whose renaming then fails.
  const auto here = identity_of(directory);
  const auto above = identity_of(directory / "..");
  return here && above && (here->device != above->device || here->inode == above->inode);
}

}  // namespace mxfp4
