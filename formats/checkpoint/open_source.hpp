// Opens a checkpoint, whatever container it is stored in.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Opens a checkpoint directory, one safetensors file, an HDF5 file, a raw dump (its directory or its
// manifest.json), or what an address names (far_folder.hpp). Throws Error::input.
[[nodiscard]] std::unique_ptr<Source> open_source(const std::filesystem::path& path);

// The manifest of a blob's first rank where open_source would open the blob; null for other inputs.
[[nodiscard]] std::optional<Manifest> blob_at(const std::filesystem::path& path);

}  // namespace mxfp4
