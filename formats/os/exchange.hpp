// Makes two directories change names at once.
#pragma once

#include <filesystem>

namespace mxfp4 {

// Makes `a` and `b`, in one file system, each name what the other one named, in one step. False if
// the file system or the kernel cannot; other errors are Error::output naming `b`.
[[nodiscard]] bool exchange_names(const std::filesystem::path& a, const std::filesystem::path& b);

// Renames; `to` must not exist, or be an empty directory. Throws Error::output naming `to`.
void rename_to(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace mxfp4
