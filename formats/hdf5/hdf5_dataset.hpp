// Asks the HDF5 library about one dataset or attribute. The library may crash on a damaged file:
// call this in a process of its own (child_process.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "formats/hdf5/hdf5_chunk_finder.hpp"
#include "formats/hdf5/hdf5_handle.hpp"
#include "formats/hdf5/hdf5_index.hpp"

namespace mxfp4 {

// Describes everything about the dataset but its name. `finder` belongs to the dataset's file.
// Calls `alive` now and then while it looks up chunks. Throws Error::input for element types,
// storage and filters that are not supported.
[[nodiscard]] Hdf5Dataset describe_hdf5_dataset(hid_t dataset, const Hdf5ChunkFinder& finder,
                                                const std::function<void()>& alive);

// Whether the dataset's elements are integers or floats.
[[nodiscard]] bool hdf5_holds_numbers(hid_t dataset);

// A string attribute of one element; empty if there is none. Throws Error::input when it has
// another type.
[[nodiscard]] std::optional<std::string> read_hdf5_string(hid_t object, const char* name);

// A string or integer attribute of one element, as text; empty for any other type.
[[nodiscard]] std::optional<std::string> read_hdf5_attribute(hid_t attribute);

}  // namespace mxfp4
