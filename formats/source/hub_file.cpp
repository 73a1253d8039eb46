#include "formats/source/hub_file.hpp"

#include <system_error>

namespace mxfp4 {

std::string hub_sha256(const std::filesystem::path& path) {
  constexpr size_t kDigits = 64;
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  std::string name = target.filename().string();
  const bool named = !error && target.parent_path().filename() == "blobs" &&
                     name.size() == kDigits &&
                     name.find_first_not_of("0123456789abcdef") == std::string::npos;
  return named ? name : "";
}

}  // namespace mxfp4
