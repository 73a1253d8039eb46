// Where the process was when a relative path was given: files that are opened later are then those
// that were meant, though the process went to another directory meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mxfp4 {

class StartingDirectory {
 public:
  StartingDirectory();

  // A way to `path`, as it was meant then: `path` itself as long as the process stays where it was,
  // since directories above may be closed to it.
  [[nodiscard]] std::filesystem::path way_to(const std::filesystem::path& path) const;

 private:
  std::filesystem::path directory_;  // empty where the system does not say
  uint64_t device_ = 0, inode_ = 0;
};

}  // namespace mxfp4
