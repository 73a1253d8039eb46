// Opens a checkpoint, whatever container it is stored in.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/source.hpp"

namespace mxfp4 {

// Opens a checkpoint directory, a hub cache or the folder of a model in one (hub_cache.hpp), one
// safetensors file, an HDF5 file, or a raw dump (its directory or its manifest.json). Throws
// Error::input.
[[nodiscard]] std::unique_ptr<Source> open_source(const std::filesystem::path& path);

}  // namespace mxfp4
