// Looks at the chunks of a dataset before the library decodes them. The library takes what a filter
// gives for a whole chunk, however long it is: behind a short one lies memory of anybody.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "formats/hdf5/hdf5_handle.hpp"

namespace mxfp4 {

class ChunkLengths {
 public:
  // `dataset` must outlive this. `width`: bytes of an element.
  ChunkLengths(hid_t dataset, size_t width);

  // Throws Error::input unless every chunk of this slab decodes to the bytes of a chunk. Each chunk
  // is looked at once.
  void check(std::span<const hsize_t> first, std::span<const hsize_t> extent);

 private:
  void check_chunk(const std::vector<hsize_t>& offset);

  hid_t dataset_;
  std::vector<hsize_t> chunk_;  // elements along each axis; empty: not chunked, or not filtered
  std::vector<H5Z_filter_t> filters_;
  size_t bytes_ = 0;  // of a decoded chunk
  std::set<std::vector<hsize_t>> checked_;
};

}  // namespace mxfp4
