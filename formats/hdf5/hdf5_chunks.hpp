// Parts of a chunked HDF5 dataset: finds, decodes and assembles the chunks that a part meets.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Keeps decoded chunks whose end a read did not reach, because the next read begins in them. A reader
// that goes from front to back then decodes each chunk once, as long as the chunks side by side in
// one row of the grid fit in kMaxBytes. Chunks whose last element was read are not kept.
class Hdf5ChunkCache {
 public:
  static constexpr int64_t kMaxBytes = kMaxHdf5Chunk;
  // Decoded bytes; owned, unless they are those of the file.
  struct Chunk {
    ConstBytes bytes;
    std::shared_ptr<const UninitializedBytes> owned;
  };

  // Takes the chunk out of the cache. Its `bytes` are empty if it is not there.
  [[nodiscard]] Chunk take(size_t dataset, int64_t chunk);
  // Keeps the chunk; the oldest are dropped until all together have at most kMaxBytes.
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

// Reads bytes [offset, offset + out.size()) of the dataset, whole elements within it, to `out`, in
// stored byte order. `file` is the whole file, `index` identifies the dataset in the cache.
// Requires dataset.check(file.size()). Throws Error::input for damaged chunks.
void read_hdf5_chunks(ConstBytes file, const Hdf5Dataset& dataset, size_t index, int64_t offset,
                      Hdf5ChunkCache& cache, MutableBytes out);

}  // namespace mxfp4
