// libFuzzer target: the first two bytes say how many of the next are the index of an HDF5 file, the
// rest is the file. What the check accepts and is small is read, at once, row by row and in pieces
// that end anywhere: all give the same bytes, or all Error::input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "formats/hdf5/hdf5_chunks.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kMaxBytes = 256 << 10;
constexpr int64_t kMaxRows = 256;

// Empty when the data are damaged.
std::optional<Bytes> read_in_steps(mxfp4::ConstBytes file, const mxfp4::Hdf5Dataset& dataset,
                                   int64_t step) {
  const int64_t bytes = dataset.spec.bytes();
  Bytes out(static_cast<size_t>(bytes));
  mxfp4::Hdf5ChunkCache cache;
  bool damaged = false;
  mxfp4::fuzz::only_input_errors([&] {
    damaged = true;
    for (int64_t at = 0; at < bytes; at += step) {
      const mxfp4::MutableBytes part = mxfp4::MutableBytes(out).subspan(
          static_cast<size_t>(at), static_cast<size_t>(std::min(step, bytes - at)));
      mxfp4::read_hdf5_chunks(file, dataset, 0, at, cache, part);
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
  const int64_t bytes = dataset.spec.bytes();
  const int64_t width = mxfp4::dtype_bytes(dataset.spec.dtype);
  const std::optional<Bytes> at_once = read_in_steps(file, dataset, bytes);
  for (int64_t step : {bytes / dataset.spec.shape[0], (bytes / width / 60 + 7) * width}) {
    if (read_in_steps(file, dataset, step) != at_once) std::abort();
  }
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
