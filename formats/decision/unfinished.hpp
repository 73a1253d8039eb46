// Refuses an incomplete result that a command is given to read.
#pragma once

#include <filesystem>

namespace mxfp4 {

// Throws Error::input, with a hint, if `path` holds a conversion or an unpack that was cut off, or
// shards that were not finalized, or one that another process of this machine is writing.
void refuse_unfinished(const std::filesystem::path& path);

}  // namespace mxfp4
