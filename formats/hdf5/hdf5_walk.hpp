// Walks through an HDF5 file with the HDF5 library and describes what it holds.
#pragma once

#include <string>

#include "formats/os/child_process.hpp"

namespace mxfp4 {

// Emits the pieces of an Hdf5Index (hdf5_index.hpp), datasets in any order. The library may crash
// on a damaged file: run this in a child process. Throws Error::input, without the path in its
// text.
void walk_hdf5(const std::string& path, const Emit& emit);

}  // namespace mxfp4
