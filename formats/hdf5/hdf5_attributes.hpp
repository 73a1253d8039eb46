// Attributes of an HDF5 file's objects, as texts.
#pragma once

#include <optional>
#include <string>

#include "formats/hdf5/hdf5_handle.hpp"
#include "formats/os/child_process.hpp"

namespace mxfp4 {

// A string or integer attribute of one element, as text; empty for any other type. Throws
// Error::input.
[[nodiscard]] std::optional<std::string> read_attribute(hid_t attribute);

// Emits the root group's as parts of an Hdf5Index. Throws Error::input naming the attribute.
void emit_root_attributes(hid_t file, const Emit& emit);

}  // namespace mxfp4
