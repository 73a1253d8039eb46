#include "formats/hdf5_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Coordinates = std::vector<int64_t>;  // one number an axis

// Part of a chunk that lies in the slab, and where both lie.
struct Overlap {
  Coordinates first;   // of the overlap, in the dataset
  Coordinates extent;  // of the overlap
  Coordinates origin;  // of the chunk, in the dataset
};

class SlabReader {
 public:
  SlabReader(ConstBytes file, const Hdf5Dataset& dataset) : file_(file), d_(dataset) {}

  void read(size_t index, int64_t first_row, int64_t rows, Hdf5ChunkCache& cache,
            MutableBytes out) const {
    const int64_t last_row = first_row + rows - 1;
    Coordinates at(d_.chunk_shape.size(), 0);  // in the grid of chunks
    for (at[0] = first_row / d_.chunk_shape[0]; at[0] <= last_row / d_.chunk_shape[0];) {
      const Overlap overlap = overlap_of(at, first_row, rows);
      const int64_t number = chunk_number(at);
      Hdf5ChunkCache::Chunk chunk = cache.take(index, number);
      if (chunk.bytes.empty()) chunk = load(number);
      copy(chunk.bytes, overlap, first_row, out);
      const int64_t chunk_end = std::min(overlap.origin[0] + d_.chunk_shape[0], d_.spec.shape[0]);
      if (chunk_end > last_row + 1) cache.keep(index, number, std::move(chunk));
      advance(at);
    }
  }

 private:
  // The next place in the grid, the last axis first; axis 0 has no end here.
  void advance(Coordinates& at) const {
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < d_.grid(axis) || axis == 0) return;
      at[axis] = 0;
    }
  }
  // Fits: there are no more chunks than elements.
  [[nodiscard]] int64_t chunk_number(const Coordinates& at) const {
    int64_t number = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) number = number * d_.grid(axis) + at[axis];
    return number;
  }

  [[nodiscard]] Overlap overlap_of(const Coordinates& at, int64_t first_row, int64_t rows) const {
    Overlap overlap;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const int64_t slab_begin = axis == 0 ? first_row : 0;
      const int64_t slab_end = axis == 0 ? first_row + rows : d_.spec.shape[static_cast<int>(axis)];
      const int64_t origin = at[axis] * d_.chunk_shape[axis];
      const int64_t first = std::max(origin, slab_begin);
      // Not origin + chunk: a chunk may be longer than the dataset by any amount.
      const int64_t end =
          slab_end - origin <= d_.chunk_shape[axis] ? slab_end : origin + d_.chunk_shape[axis];
      overlap.origin.push_back(origin);
      overlap.first.push_back(first);
      overlap.extent.push_back(end - first);
    }
    return overlap;
  }

  [[nodiscard]] Hdf5ChunkCache::Chunk load(int64_t number) const {
    const Hdf5Chunk& chunk = d_.chunks[static_cast<size_t>(number)];
    if (chunk.address < 0) return owning(filled());
    const ConstBytes stored =
        file_.subspan(static_cast<size_t>(chunk.address), static_cast<size_t>(chunk.size));
    if (d_.filters.empty()) return {stored, nullptr};
    return in_context(fmt::format("chunk {}", number), [&] {
      return owning(decode_hdf5_chunk(d_.filters, chunk.skipped, stored, d_.chunk_bytes()));
    });
  }

  static Hdf5ChunkCache::Chunk owning(UnclearedBytes bytes) {
    auto owned = std::make_shared<const UnclearedBytes>(std::move(bytes));
    return {*owned, owned};
  }

  [[nodiscard]] UnclearedBytes filled() const {
    UnclearedBytes out(static_cast<size_t>(d_.chunk_bytes()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = d_.fill[i % d_.fill.size()];
    return out;
  }

  // Copies runs of whole trailing axes: those in which a chunk is as long as the dataset.
  void copy(ConstBytes chunk, const Overlap& overlap, int64_t first_row, MutableBytes out) const {
    size_t run_axis = d_.chunk_shape.size() - 1;
    int64_t unit = dtype_bytes(d_.spec.dtype);
    while (run_axis > 0 && d_.chunk_shape[run_axis] == d_.spec.shape[static_cast<int>(run_axis)]) {
      unit *= d_.chunk_shape[run_axis--];
    }
    copy_axis(0, run_axis, unit, chunk, overlap, first_row, 0, 0, out);
  }

  // `from` and `to` count, in chunk and slab, the places of the axes before this one.
  void copy_axis(size_t axis, size_t run_axis, int64_t unit, ConstBytes chunk,
                 const Overlap& overlap, int64_t first_row, int64_t from, int64_t to,
                 MutableBytes out) const {
    from = from * d_.chunk_shape[axis] + overlap.first[axis] - overlap.origin[axis];
    to = axis == 0 ? overlap.first[0] - first_row
                   : to * d_.spec.shape[static_cast<int>(axis)] + overlap.first[axis];
    if (axis == run_axis) {
      std::memcpy(out.data() + to * unit, chunk.data() + from * unit,
                  static_cast<size_t>(overlap.extent[axis] * unit));
      return;
    }
    for (int64_t i = 0; i < overlap.extent[axis]; ++i) {
      copy_axis(axis + 1, run_axis, unit, chunk, overlap, first_row, from + i, to + i, out);
    }
  }

  ConstBytes file_;
  const Hdf5Dataset& d_;
};

}  // namespace

Hdf5ChunkCache::Chunk Hdf5ChunkCache::take(size_t dataset, int64_t chunk) {
  const auto at = std::ranges::find_if(
      entries_, [&](const Entry& e) { return e.dataset == dataset && e.chunk == chunk; });
  if (at == entries_.end()) return {};
  Chunk data = std::move(at->data);
  bytes_ -= static_cast<int64_t>(data.bytes.size());
  entries_.erase(at);
  return data;
}

void Hdf5ChunkCache::keep(size_t dataset, int64_t chunk, Chunk data) {
  bytes_ += static_cast<int64_t>(data.bytes.size());
  entries_.push_back({dataset, chunk, std::move(data)});
  while (bytes_ > kMaxBytes) {
    bytes_ -= static_cast<int64_t>(entries_.front().data.bytes.size());
    entries_.pop_front();
  }
}

void read_hdf5_rows(ConstBytes file, const Hdf5Dataset& dataset, size_t index, int64_t first_row,
                    int64_t rows, Hdf5ChunkCache& cache, MutableBytes out) {
  if (rows > 0) SlabReader(file, dataset).read(index, first_row, rows, cache, out);
}

}  // namespace mxfp4
