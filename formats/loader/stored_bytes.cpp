#include "formats/loader/stored_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// How many bytes of rows are read at once.
constexpr int64_t kRowsBytes = int64_t{64} << 10;

// Calls each(Extent) for bytes [offset, offset + bytes) of a stored matrix, in order.
template <class Each>
void for_each_part(const std::vector<Extent>& stored, int64_t offset, int64_t bytes,
                   const Each& each) {
  int64_t begin = 0;  // of the extent, in the stored matrix
  for (const Extent& extent : stored) {
    const int64_t skip = std::max<int64_t>(offset - begin, 0);
    if (bytes > 0 && skip < extent.bytes) {
      const int64_t part = std::min(bytes, extent.bytes - skip);
      each(Extent{extent.tensor, extent.offset + skip, part});
      offset += part;
      bytes -= part;
    }
    begin += extent.bytes;
  }
  if (bytes > 0) throw Error::internal("a slice lies outside of its expert");
}

}  // namespace

void StoredBytes::read(const PositionedSource& source, const Assembly& assembly,
                       const std::vector<Extent>& stored, int64_t begin, int64_t end,
                       std::byte* to) {
  source_ = &source;
  stored_ = &stored;
  const int64_t row_bytes = assembly.loaded.row_bytes;
  int64_t done = begin;
  const auto pad = [&](int64_t until) {
    if (until <= done) return;
    std::memset(to + (done - begin), std::to_integer<int>(assembly.fill),
                static_cast<size_t>(until - done));
    done = until;
  };
  for (const CopyRect& rect : assembly.rects) {
    const int64_t first = std::max(rect.to_row, begin / row_bytes);
    const int64_t last = std::min(rect.to_row + rect.rows, ceil_div(end, row_bytes));
    if (last <= first) continue;
    pad(first * row_bytes);
    if (rect.col_bytes == row_bytes && row_bytes == assembly.stored.row_bytes && rect.step == 1) {
      const int64_t from = std::max(begin, first * row_bytes);
      const int64_t until = std::min(end, last * row_bytes);
      read_stored(source, stored, (rect.from_row - rect.to_row) * row_bytes + from,
                  MutableBytes(to + (from - begin), static_cast<size_t>(until - from)));
    } else {
      read_rows(assembly, rect, first, last, begin, end, to);
    }
    done = std::min(end, last * row_bytes);
  }
  pad(end);
}

void StoredBytes::read_rows(const Assembly& assembly, const CopyRect& rect, int64_t first,
                            int64_t last, int64_t begin, int64_t end, std::byte* to) {
  const int64_t row_bytes = assembly.loaded.row_bytes;
  const int64_t distance = assembly.stored.row_bytes * rect.step;
  const int64_t at_once = std::max<int64_t>(1, kRowsBytes / distance);
  for (int64_t row = first; row < last; row += at_once) {
    const int64_t count = std::min(at_once, last - row);
    // From the first row's first column to the last row's last one. What lies between is read, too: it
    // was fetched.
    const int64_t bytes =
        row + count == last ? (count - 1) * distance + rect.col_bytes : count * distance;
    const MutableBytes rows = rows_.get(bytes);
    const int64_t offset =
        rect.from_row * assembly.stored.row_bytes + (row - rect.to_row) * distance + rect.from_col;
    read_stored(*source_, *stored_, offset, rows);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = (row + i) * row_bytes;
      // Columns that are wanted: of the first and the last row not all may be.
      const int64_t from = std::clamp<int64_t>(begin - at, 0, row_bytes);
      const int64_t until = std::clamp<int64_t>(end - at, 0, row_bytes);
      const int64_t copied = std::clamp<int64_t>(rect.col_bytes, from, until);
      std::byte* const row_to = to + (at - begin);
      std::memcpy(row_to + from, rows.data() + i * distance + from,
                  static_cast<size_t>(copied - from));
      std::memset(row_to + copied, std::to_integer<int>(assembly.fill),
                  static_cast<size_t>(until - copied));
    }
  }
}

void StoredBytes::expect(const PositionedSource& source, const Assembly& assembly,
                         const std::vector<Extent>& stored) {
  const int64_t row_bytes = assembly.stored.row_bytes;
  for (const CopyRect& rect : assembly.rects) {
    if (rect.rows == 0) continue;
    for_each_part(stored, rect.from_row * row_bytes + rect.from_col,
                  (rect.rows - 1) * rect.step * row_bytes + rect.col_bytes,
                  [&](const Extent& part) { source.expect(part); });
  }
}

void StoredBytes::read_stored(const PositionedSource& source, const std::vector<Extent>& stored,
                              int64_t offset, MutableBytes out) {
  for_each_part(stored, offset, std::ssize(out), [&](const Extent& part) {
    const PositionedSource::Place place = source.place_of(part.tensor);
    const auto bytes = static_cast<size_t>(part.bytes);
    in_context(source.tensors()[part.tensor].file,
               [&] { place.file->read(place.offset + part.offset, out.first(bytes)); });
    out = out.subspan(bytes);
  });
}

}  // namespace mxfp4
