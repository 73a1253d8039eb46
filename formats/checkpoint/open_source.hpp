// Opens a checkpoint, whatever container it is stored in.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/source.hpp"

namespace mxfp4 {

// Opens a checkpoint directory, the folder of a model in a hub cache, one safetensors file, an HDF5
// file, or a raw dump (its directory or its manifest.json). Throws Error::input.
[[nodiscard]] std::unique_ptr<Source> open_source(const std::filesystem::path& path);

}  // namespace mxfp4
