#include "formats/os/file_identity.hpp"

#include <sys/stat.h>

#include <system_error>

namespace mxfp4 {

namespace fs = std::filesystem;

std::optional<FileIdentity> identity_of(const fs::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
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

}  // namespace mxfp4
