// The filters of HDF5 chunks: which are known, and how a stored chunk is decoded.
//
// Chunks are decoded here and not by the library, because a damaged chunk may decode to any size:
// here every step is bounded by the size that the dataset states, and the result must have exactly
// that size. Sources: HDF5 File Format Specification 3.0 (IV.A.2.l), zlib, and the registered
// filter 32015.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// The most filters that the library allows; Hdf5Chunk::skipped has a bit for each.
inline constexpr size_t kMaxHdf5Filters = 32;

struct Hdf5Filter {
  int id = 0;
  std::vector<unsigned> params;
};

// Throws Error::input, with number and name, unless decode_hdf5_chunk knows the filter: deflate
// (1), shuffle (2), fletcher32 (3), zstd (32015). `comment` is the file's name for the filter.
void check_hdf5_filter(int id, std::string_view comment);

// Undoes the filters, last one first, except those whose bit is set in `skipped`. The result has
// chunk_bytes bytes. Throws Error::input.
[[nodiscard]] UninitializedBytes decode_hdf5_chunk(const std::vector<Hdf5Filter>& filters,
                                                   uint32_t skipped, ConstBytes stored,
                                                   int64_t chunk_bytes);

// Checksum of filter 3 over the bytes as big-endian 16-bit words.
[[nodiscard]] uint32_t hdf5_fletcher32(ConstBytes data);

// Makes filter 32015 known to the HDF5 library of this process, in both directions.
void register_zstd_filter();

}  // namespace mxfp4
