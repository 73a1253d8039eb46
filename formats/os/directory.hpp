// Lists directories and removes empty ones. The caller decides whether a directory that cannot be
// read is an error of input, of output, or none.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace mxfp4 {

// The entries, in no order. Sets `error` on failure and returns the entries found until then.
[[nodiscard]] std::vector<std::filesystem::directory_entry> list_directory(
    const std::filesystem::path& directory, std::error_code& error);

// Removes the empty folders in the directory, and the directory if it is empty then. Follows no
// links.
void remove_if_empty(const std::filesystem::path& directory);

}  // namespace mxfp4
