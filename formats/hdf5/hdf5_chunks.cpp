#include "formats/hdf5/hdf5_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Coordinates = std::vector<int64_t>;  // one number an axis

// Consecutive elements of a dataset that form a box: one index of each of the first axes, some of
// the next axis, all of the axes behind.
struct Slab {
  Coordinates first;
  Coordinates extent;
};

// The part of a chunk that lies in a slab, and where the chunk begins.
struct Overlap {
  Coordinates first;   // of the overlap, in the dataset
  Coordinates extent;  // of the overlap
  Coordinates origin;  // of the chunk, in the dataset
};

class SlabReader {
 public:
  SlabReader(ConstBytes file, const Hdf5Dataset& dataset)
      : file_(file), d_(dataset), strides_(dataset.chunk_shape.size(), 1) {
    for (size_t axis = strides_.size() - 1; axis > 0; --axis) {
      strides_[axis - 1] = strides_[axis] * dim(axis);
    }
  }

  // The longest slab that begins at element `at` and has at most `count` elements.
  [[nodiscard]] Slab slab_at(int64_t at, int64_t count) const {
    Slab slab;
    bool inside = true;  // the slab lies inside one index of each axis before
    for (size_t axis = 0; axis < strides_.size(); ++axis) {
      slab.first.push_back(at / strides_[axis] % dim(axis));
      const bool ranges = inside && at % strides_[axis] == 0 && count >= strides_[axis];
      slab.extent.push_back(ranges ? std::min(count / strides_[axis], dim(axis) - slab.first[axis])
                            : inside ? 1
                                     : dim(axis));
      inside = inside && !ranges;
    }
    return slab;
  }

  [[nodiscard]] int64_t elements(const Slab& slab) const {
    int64_t product = 1;
    for (int64_t extent : slab.extent) product *= extent;
    return product;
  }

  // `out` has room for the slab.
  void read(size_t index, const Slab& slab, Hdf5ChunkCache& cache, MutableBytes out) const {
    const int64_t end = number_of(slab.first) + elements(slab);
    Coordinates at;  // in the grid of chunks
    for (size_t axis = 0; axis < strides_.size(); ++axis) at.push_back(first_chunk(slab, axis));
    do {
      const Overlap overlap = overlap_of(at, slab);
      const int64_t number = chunk_number(at);
      Hdf5ChunkCache::Chunk chunk = cache.take(index, number);
      if (chunk.bytes.empty()) chunk = load(number);
      copy(chunk.bytes, overlap, slab, out);
      if (last_element(overlap.origin) >= end) cache.keep(index, number, std::move(chunk));
    } while (advance(slab, at));
  }

 private:
  [[nodiscard]] int64_t dim(size_t axis) const { return d_.spec.shape[static_cast<int>(axis)]; }
  [[nodiscard]] int64_t number_of(const Coordinates& element) const {
    int64_t number = 0;
    for (size_t axis = 0; axis < strides_.size(); ++axis) number += element[axis] * strides_[axis];
    return number;
  }
  // Where the chunk ends, but at most `end`. origin + chunk could overflow: a chunk may be longer
  // than the dataset by any amount.
  [[nodiscard]] int64_t chunk_end(size_t axis, int64_t origin, int64_t end) const {
    return end - origin <= d_.chunk_shape[axis] ? end : origin + d_.chunk_shape[axis];
  }
  [[nodiscard]] int64_t last_element(const Coordinates& origin) const {
    Coordinates last;
    for (size_t axis = 0; axis < strides_.size(); ++axis) {
      last.push_back(chunk_end(axis, origin[axis], dim(axis)) - 1);
    }
    return number_of(last);
  }

  [[nodiscard]] int64_t first_chunk(const Slab& slab, size_t axis) const {
    return slab.first[axis] / d_.chunk_shape[axis];
  }
  // Moves `at` to the next chunk that meets the slab, the last axis first; false if there is none.
  [[nodiscard]] bool advance(const Slab& slab, Coordinates& at) const {
    for (size_t axis = at.size(); axis-- > 0;) {
      const int64_t last = (slab.first[axis] + slab.extent[axis] - 1) / d_.chunk_shape[axis];
      if (++at[axis] <= last) return true;
      at[axis] = first_chunk(slab, axis);
    }
    return false;
  }
  // Cannot overflow: there are no more chunks than elements.
  [[nodiscard]] int64_t chunk_number(const Coordinates& at) const {
    int64_t number = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) number = number * d_.grid(axis) + at[axis];
    return number;
  }

  [[nodiscard]] Overlap overlap_of(const Coordinates& at, const Slab& slab) const {
    Overlap overlap;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const int64_t origin = at[axis] * d_.chunk_shape[axis];
      const int64_t first = std::max(origin, slab.first[axis]);
      const int64_t end = chunk_end(axis, origin, slab.first[axis] + slab.extent[axis]);
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

  static Hdf5ChunkCache::Chunk owning(UninitializedBytes bytes) {
    auto owned = std::make_shared<const UninitializedBytes>(std::move(bytes));
    return {*owned, owned};
  }

  [[nodiscard]] UninitializedBytes filled() const {
    UninitializedBytes out(static_cast<size_t>(d_.chunk_bytes()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = d_.fill[i % d_.fill.size()];
    return out;
  }

  // Joins the trailing axes in which chunk and slab are as long as the dataset: their elements are
  // consecutive in both, and copied as one run.
  void copy(ConstBytes chunk, const Overlap& overlap, const Slab& slab, MutableBytes out) const {
    size_t run_axis = d_.chunk_shape.size() - 1;
    int64_t unit = dtype_bytes(d_.spec.dtype);
    while (run_axis > 0 && d_.chunk_shape[run_axis] == dim(run_axis) &&
           slab.extent[run_axis] == dim(run_axis)) {
      unit *= d_.chunk_shape[run_axis--];
    }
    copy_axis(0, run_axis, unit, chunk, overlap, slab, 0, 0, out);
  }

  // `from` and `to`: the position in the chunk and in the slab, in indices of the axes before this
  // one.
  void copy_axis(size_t axis, size_t run_axis, int64_t unit, ConstBytes chunk,
                 const Overlap& overlap, const Slab& slab, int64_t from, int64_t to,
                 MutableBytes out) const {
    from = from * d_.chunk_shape[axis] + overlap.first[axis] - overlap.origin[axis];
    to = to * slab.extent[axis] + overlap.first[axis] - slab.first[axis];
    if (axis == run_axis) {
      std::memcpy(out.data() + to * unit, chunk.data() + from * unit,
                  static_cast<size_t>(overlap.extent[axis] * unit));
      return;
    }
    for (int64_t i = 0; i < overlap.extent[axis]; ++i) {
      copy_axis(axis + 1, run_axis, unit, chunk, overlap, slab, from + i, to + i, out);
    }
  }

  ConstBytes file_;
  const Hdf5Dataset& d_;
  Coordinates strides_;  // elements of one index of an axis
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

void read_hdf5_chunks(ConstBytes file, const Hdf5Dataset& dataset, size_t index, int64_t offset,
                      Hdf5ChunkCache& cache, MutableBytes out) {
  const int64_t width = dtype_bytes(dataset.spec.dtype);
  const SlabReader reader(file, dataset);
  int64_t at = offset / width;
  while (!out.empty()) {
    const Slab slab = reader.slab_at(at, static_cast<int64_t>(out.size()) / width);
    const int64_t elements = reader.elements(slab);
    const auto bytes = static_cast<size_t>(elements * width);
    reader.read(index, slab, cache, out.first(bytes));
    out = out.subspan(bytes);
    at += elements;
  }
}

}  // namespace mxfp4
