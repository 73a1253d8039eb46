// Which file or directory a path leads to: paths through symbolic links, hard links, bind mounts
// and second mounts of one volume can lead to the same one.
#pragma once

#include <sys/types.h>

#include <compare>
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

// Whether `directory` is `path`, or one of the directories above it. Links are followed.
[[nodiscard]] bool lies_in(const std::filesystem::path& path,
                           const std::filesystem::path& directory);

}  // namespace mxfp4
