// What is in a directory, for callers to whom a directory that cannot be read is an error of input,
// one of output, or none.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace mxfp4 {

// The entries, in no order; with `error` set, those that were got until then.
[[nodiscard]] std::vector<std::filesystem::directory_entry> list_directory(
    const std::filesystem::path& directory, std::error_code& error);

}  // namespace mxfp4
