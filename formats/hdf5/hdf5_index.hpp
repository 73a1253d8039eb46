// What an HDF5 file holds and where, as plain values. Reading the data needs nothing else: once the
// index is made, the HDF5 library is not used any more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/hdf5_filters.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Chunks are decoded whole, so they must fit in memory. Bytes.
inline constexpr int64_t kMaxHdf5Chunk = int64_t{256} << 20;
// Chunks of one dataset: bounds the memory for their places, 24 bytes each, that a file can demand.
inline constexpr int64_t kMaxHdf5Chunks = int64_t{1} << 20;

// Where a chunk is stored. Address -1: it was never written, and its elements have the fill value.
struct Hdf5Chunk {
  int64_t address = -1;  // bytes from the start of the file
  int64_t size = 0;      // bytes
  uint32_t skipped = 0;  // bit i: filter i was not applied
};

struct Hdf5Dataset {
  std::string name;  // dotted
  TensorSpec spec;
  bool big_endian = false;  // as stored; tensors are little-endian
  // Contiguous storage: where it begins in the file. Chunked storage: -1.
  int64_t file_offset = -1;
  std::vector<int64_t> chunk_shape;  // empty: contiguous
  std::vector<Hdf5Filter> filters;
  std::vector<std::byte> fill;    // one element as stored; empty: missing chunks are an error
  std::vector<Hdf5Chunk> chunks;  // row-major in the grid of chunks

  [[nodiscard]] bool chunked() const { return !chunk_shape.empty(); }
  // Decoded bytes of one chunk. Throws Error::input on overflow.
  [[nodiscard]] int64_t chunk_bytes() const;
  // Chunks along an axis.
  [[nodiscard]] int64_t grid(size_t axis) const;
  // Number of chunks; throws Error::input if there are more than kMaxHdf5Chunks.
  [[nodiscard]] int64_t num_chunks() const;
  // Throws Error::input unless the chunk shape suits the shape and the limits above.
  void check_chunk_grid() const;
  // Throws Error::input if the description contradicts itself or a file of this many bytes.
  void check(int64_t file_size) const;
};

struct Hdf5Index {
  std::map<std::string, std::string> attributes;  // of the root group
  std::vector<Hdf5Dataset> datasets;
};

// An index as bytes is a piece for the attributes, then one piece for each dataset.
[[nodiscard]] std::string encode_hdf5_attributes(const std::map<std::string, std::string>& values);
[[nodiscard]] std::string encode_hdf5_dataset(const Hdf5Dataset& dataset);
// Throws Error::input for bytes that are not such pieces. The caller calls check() of each dataset.
[[nodiscard]] Hdf5Index decode_hdf5_index(std::string_view bytes);

}  // namespace mxfp4
