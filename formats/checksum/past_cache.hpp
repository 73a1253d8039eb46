// Files as their device has them: read past the system's page cache, which holds what was written
// and not what is stored (verify --direct). Where a file system has no such reads (O_DIRECT), the
// cache is asked to let the file go first.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "formats/os/positioned_file.hpp"

namespace mxfp4 {

// Where a check has its bytes from: the page cache, or the device behind it.
enum class ReadFrom : bool { kCache, kDevice };

// The file, set up so that it is read past the page cache. Throws Error::input, without the path in
// its text.
[[nodiscard]] PositionedFile open_past_cache(const std::filesystem::path& path);

// XXH3-128 of the whole file, as 32 hexadecimal digits. `between`, if given, is called every few MB
// and may throw. Throws Error::input, without the path in its text.
[[nodiscard]] std::string checksum_of_file(const PositionedFile& file,
                                           const std::function<void()>& between = {});

}  // namespace mxfp4
