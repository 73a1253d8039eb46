#include "formats/os/starting_directory.hpp"

#include <sys/stat.h>

#include <system_error>

namespace mxfp4 {

StartingDirectory::StartingDirectory() {
  std::error_code error;
  directory_ = std::filesystem::current_path(error);
  struct stat here {};
  if (::stat(".", &here) != 0) return;
  device_ = here.st_dev;
  inode_ = here.st_ino;
}

std::filesystem::path StartingDirectory::way_to(const std::filesystem::path& path) const {
  if (path.is_absolute()) return path;
  struct stat here {};
  const bool stayed = ::stat(".", &here) == 0 && here.st_dev == device_ && here.st_ino == inode_;
  return stayed ? path : directory_ / path;
}

}  // namespace mxfp4
