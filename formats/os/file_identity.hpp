// Which file or directory a path leads to: paths through symbolic links, hard links, bind mounts
// and second mounts of one volume can lead to the same one.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace mxfp4 {

// Device and inode of a file or directory.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

// The identity of what `path` leads to, symbolic links followed; nullopt if it cannot be reached.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

// Shows whether a path still names the file that was looked at. Links are not followed.
struct FileState {
  FileIdentity identity;
  int64_t size = 0;
  int64_t mtime_ns = 0;
  bool operator==(const FileState&) const = default;
};
[[nodiscard]] FileState file_state(const struct stat& found);
[[nodiscard]] std::optional<FileState> state_of(const std::filesystem::path& path);

// Whether `directory` is `path`, or one of the directories above it. Links are followed.
[[nodiscard]] bool lies_in(const std::filesystem::path& path,
                           const std::filesystem::path& directory);

}  // namespace mxfp4
