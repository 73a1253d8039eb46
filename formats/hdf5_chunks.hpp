// Slabs of a chunked HDF5 dataset: finds, decodes and assembles the chunks that a slab meets.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "formats/hdf5_index.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Decoded chunks that a slab met but did not reach the end of: the next slab begins in them. A
// reader that goes from front to back so decodes each chunk once, as long as the chunks side by
// side in one row of the grid fit in kMaxBytes. Chunks that a slab ends with are not kept at all.
class Hdf5ChunkCache {
 public:
  static constexpr int64_t kMaxBytes = kMaxHdf5Chunk;
  // Decoded bytes; owned, unless they are those of the file.
  struct Chunk {
    ConstBytes bytes;
    std::shared_ptr<const UnclearedBytes> owned;
  };

  // Takes the chunk out; without bytes if it is not there.
  [[nodiscard]] Chunk take(size_t dataset, int64_t chunk);
  // Keeps it, at the price of the oldest.
  void keep(size_t dataset, int64_t chunk, Chunk data);

 private:
  struct Entry {
    size_t dataset;
    int64_t chunk;
    Chunk data;
  };
  std::list<Entry> entries_;
  int64_t bytes_ = 0;
};

// Reads rows [first_row, first_row + rows) of dimension 0 to `out`, in stored byte order. `file` is
// the whole file, `index` identifies the dataset in the cache. Requires dataset.check(file.size()).
// Throws Error::input for damaged chunks.
void read_hdf5_rows(ConstBytes file, const Hdf5Dataset& dataset, size_t index, int64_t first_row,
                    int64_t rows, Hdf5ChunkCache& cache, MutableBytes out);

}  // namespace mxfp4
