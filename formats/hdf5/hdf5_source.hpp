// Reads HDF5 checkpoints (HDF5 1.10; files of every version that the library opens).
//
// Names are paths with dots for slashes: /layers/0/w13_weight is layers.0.w13_weight, and a dataset
// called a.b is the same as b in the group a. Codes and scales are 8-bit integers; a 16-bit integer
// holds the bits of a BF16 unless the dataset's attribute "dtype" names another type. IEEE floats
// and either byte order are allowed, any storage in the file itself, the filters deflate,
// shuffle, fletcher32 and zstd. Optional root attributes: format = mxfp4-hdf5, version = 1, layout = checkpoint |
// loaded, config_json, family, w13_order, ...
//
// Names come first: what cannot be read is refused if its name is an expert's or that of a group
// above experts, and else passed over, with one warning. So are soft and external links, other
// element types, virtual and external storage, dimensions of 0, datasets that were never written,
// chunks of more than 256 MiB.
//
// The library runs in a process of its own, because version 1.10 crashes on many damaged files; its
// data comes through shared memory. Contiguous little-endian datasets are served from a map of the
// file, without a copy.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/source.hpp"

namespace mxfp4 {

// Throws Error::input.
[[nodiscard]] std::unique_ptr<Source> open_hdf5(const std::filesystem::path& path);

}  // namespace mxfp4
