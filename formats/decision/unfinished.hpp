// Refuses an incomplete result that a command is given to read.
#pragma once

#include <filesystem>

namespace mxfp4 {

// Throws Error::input, with a hint, if `path` holds a conversion or an unpack that has not
// ended, or shards that were not finalized.
void refuse_unfinished(const std::filesystem::path& path);

}  // namespace mxfp4
