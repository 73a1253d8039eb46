// The error for a command that was given an incomplete result to read.
#pragma once

#include <filesystem>

namespace mxfp4 {

// Throws Error::input, with what to do as its hint, when `path` holds a conversion or an unpack
// that was cut off, shards that no finalize put together, or nothing while an interrupted
// replacement left a result beside it.
void refuse_unfinished(const std::filesystem::path& path);

}  // namespace mxfp4
