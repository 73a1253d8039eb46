// Reads parts of a chunked HDF5 dataset: decodes the chunks that a part meets, and assembles them.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Keeps decoded chunks whose last element was not read yet, because the next read begins in them.
// So a reader that goes from front to back decodes each chunk once, if the chunks side by side in
// one row of the grid fit in kMaxBytes together.
class Hdf5ChunkCache {
 public:
  static constexpr int64_t kMaxBytes = kMaxHdf5Chunk;
  // Decoded bytes. `owned` holds them, and is null if they lie in the file's map.
  struct Chunk {
    ConstBytes bytes;
    std::shared_ptr<const UninitializedBytes> owned;
  };

  // Takes the chunk out of the cache. Its `bytes` are empty if it is not there.
  [[nodiscard]] Chunk take(size_t dataset, int64_t chunk);
  // Keeps the chunk, and drops the oldest ones until the rest has at most kMaxBytes.
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
