// libFuzzer target: the first two bytes say how many of the next are the index of an HDF5 file, the
// rest is the file. What the check accepts and is small is read, in one slab and row by row: both
// give the same bytes, or both Error::input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "formats/hdf5_chunks.hpp"
#include "formats/hdf5_index.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kMaxBytes = 256 << 10;
constexpr int64_t kMaxRows = 256;

// Nothing when the data are damaged.
std::optional<Bytes> read_rows(mxfp4::ConstBytes file, const mxfp4::Hdf5Dataset& dataset,
                               int64_t step) {
  const int64_t rows = dataset.spec.shape[0];
  const int64_t row_bytes = dataset.spec.bytes() / rows;
  Bytes out(static_cast<size_t>(dataset.spec.bytes()));
  mxfp4::Hdf5ChunkCache cache;
  bool damaged = false;
  mxfp4::fuzz::only_input_errors([&] {
    damaged = true;
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      const mxfp4::MutableBytes slab = mxfp4::MutableBytes(out).subspan(
          static_cast<size_t>(row * row_bytes), static_cast<size_t>(count * row_bytes));
      mxfp4::read_hdf5_rows(file, dataset, 0, row, count, cache, slab);
    }
    damaged = false;
  });
  return damaged ? std::nullopt : std::optional(std::move(out));
}

void read_dataset(mxfp4::ConstBytes file, const mxfp4::Hdf5Dataset& dataset) {
  dataset.check(static_cast<int64_t>(file.size()));
  if (!dataset.chunked() || dataset.spec.bytes() > kMaxBytes || dataset.chunk_bytes() > kMaxBytes ||
      dataset.spec.shape[0] > kMaxRows) {
    return;
  }
  const std::optional<Bytes> at_once = read_rows(file, dataset, dataset.spec.shape[0]);
  if (read_rows(file, dataset, 1) != at_once) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t index_bytes = std::min<size_t>(data[0] + size_t{256} * data[1], size - 2);
  const mxfp4::ConstBytes bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  mxfp4::fuzz::only_input_errors([&] {
    const mxfp4::Hdf5Index index =
        mxfp4::decode_hdf5_index(mxfp4::fuzz::text_of(data + 2, index_bytes));
    for (const mxfp4::Hdf5Dataset& dataset : index.datasets) {
      mxfp4::fuzz::only_input_errors([&] { read_dataset(bytes.subspan(index_bytes), dataset); });
    }
  });
  return 0;
}
