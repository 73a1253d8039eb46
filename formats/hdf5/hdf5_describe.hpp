// One dataset of an HDF5 file as a tensor, or why it is none that this program reads.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_index.hpp"

namespace mxfp4 {

// A string or integer attribute of one element, as text; empty for any other type. Throws
// Error::input, as the others do.
[[nodiscard]] std::optional<std::string> read_attribute(hid_t attribute);

// Extents along each axis.
[[nodiscard]] std::vector<hsize_t> dims_of(hid_t space);

[[nodiscard]] bool is_big_endian(hid_t type);

// Everything but name and number.
[[nodiscard]] Hdf5Dataset describe_hdf5(hid_t dataset, hid_t type);

}  // namespace mxfp4
