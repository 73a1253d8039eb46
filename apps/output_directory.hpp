// The directory that a command writes: whether it may be used, and that a failed run does not leave
// an empty one behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace mxfp4 {

class OutputDirectory {
 public:
  // Throws Error::output when `path` exists and is not an empty directory, unless `force`. With
  // `force` what an earlier run of this program left there is removed, the manifest first; any
  // other file is refused.
  OutputDirectory(std::filesystem::path path, bool force);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  // Without keep(): removes what is empty of what did not exist before.
  ~OutputDirectory();

  // Throws Error::output when the file system has less than `bytes` free.
  void reserve(int64_t bytes) const;
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool existed_;
  bool keep_ = false;
};

}  // namespace mxfp4
