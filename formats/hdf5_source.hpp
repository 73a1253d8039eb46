// Reads HDF5 checkpoints.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source.hpp"

namespace mxfp4 {

[[nodiscard]] std::unique_ptr<Source> open_hdf5(const std::filesystem::path& path);

}  // namespace mxfp4
