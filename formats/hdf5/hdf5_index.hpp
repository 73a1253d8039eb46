// What an HDF5 file holds, as plain values, and how the child process that lists it (hdf5_file.hpp)
// hands them over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

struct Hdf5Dataset {
  std::string name;  // dotted
  TensorSpec spec;
  int64_t number = 0;  // by which the child is asked for its bytes
  // Where the bytes begin in the file, if they lie there as the tensor has them; else -1.
  int64_t file_offset = -1;

  // Throws Error::input if the description contradicts itself or a file of this many bytes.
  void check(int64_t file_size) const;
};

struct Hdf5Index {
  std::map<std::string, std::string> attributes;  // of the root group
  std::vector<Hdf5Dataset> datasets;
  std::vector<std::string> passed_over;  // "NAME: why it cannot be read", of no expert
};

[[nodiscard]] std::string encode_hdf5_index(const Hdf5Index& index);
// Throws Error::input for other bytes. The caller calls check() of each dataset.
[[nodiscard]] Hdf5Index decode_hdf5_index(std::string_view bytes);

}  // namespace mxfp4
