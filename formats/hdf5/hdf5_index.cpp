#include "formats/hdf5/hdf5_index.hpp"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

class Writer {
 public:
  void number(int64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    out_.append(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  [[nodiscard]] bool done() const { return in_.empty(); }
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  // A count of items of at least eight bytes each.
  int64_t count() {
    const int64_t value = number();
    if (value < 0 || value > static_cast<int64_t>(in_.size() / sizeof(int64_t))) refuse();
    return value;
  }
  std::string text() {
    const int64_t size = number();
    if (size < 0) refuse();
    return std::string(bytes(static_cast<size_t>(size)));
  }

 private:
  [[noreturn]] static void refuse() { throw Error::input("the HDF5 library gave a damaged index"); }
  std::string_view bytes(size_t size) {
    if (size > in_.size()) refuse();
    const std::string_view out = in_.substr(0, size);
    in_.remove_prefix(size);
    return out;
  }

  std::string_view in_;
};

std::vector<int64_t> read_numbers(Reader& in) {
  std::vector<int64_t> out(static_cast<size_t>(in.count()));
  for (int64_t& value : out) value = in.number();
  return out;
}

void write_numbers(Writer& out, std::span<const int64_t> values) {
  out.number(static_cast<int64_t>(values.size()));
  for (int64_t value : values) out.number(value);
}

Hdf5Dataset read_dataset(Reader& in) {
  Hdf5Dataset dataset;
  dataset.name = in.text();
  const auto dtype = dtype_from_name(in.text());
  if (!dtype) throw Error::input("the HDF5 library gave a damaged index");
  dataset.spec = {*dtype, Shape(read_numbers(in))};
  dataset.big_endian = in.number() != 0;
  dataset.file_offset = in.number();
  dataset.chunk_shape = read_numbers(in);
  dataset.filters.resize(static_cast<size_t>(in.count()));
  for (Hdf5Filter& filter : dataset.filters) {
    filter.id = static_cast<int>(in.number());
    for (int64_t value : read_numbers(in)) filter.params.push_back(static_cast<unsigned>(value));
  }
  for (char c : in.text()) dataset.fill.push_back(static_cast<std::byte>(c));
  dataset.chunks.resize(static_cast<size_t>(in.count()));
  for (Hdf5Chunk& chunk : dataset.chunks) {
    chunk.address = in.number();
    chunk.size = in.number();
    chunk.skipped = static_cast<uint32_t>(in.number());
  }
  return dataset;
}

void check_chunk(const Hdf5Chunk& chunk, const Hdf5Dataset& dataset, int64_t file_size) {
  if (chunk.address == -1) {
    if (dataset.fill.empty()) throw Error::input("missing, and the dataset has no fill value");
    return;
  }
  if (chunk.address < 0 || chunk.size < 0 || chunk.size > file_size ||
      chunk.address > file_size - chunk.size) {
    throw Error::input("lies past the end of the file").hint("the file may be truncated");
  }
  const int64_t decoded = dataset.chunk_bytes();
  if (dataset.filters.empty() && (chunk.size != decoded || chunk.skipped != 0)) {
    throw Error::input(fmt::format("{} bytes are stored, expected {}", chunk.size, decoded));
  }
  // No filter adds more than this to what it cannot compress.
  constexpr int64_t kSlack = 64 << 10;
  if (chunk.size > decoded + decoded / 16 + kSlack) {
    throw Error::input(fmt::format("{} bytes are stored for a chunk of {}", chunk.size, decoded));
  }
}

}  // namespace

int64_t Hdf5Dataset::chunk_bytes() const {
  int64_t bytes = dtype_bytes(spec.dtype);
  for (int64_t dim : chunk_shape) bytes = checked_mul(bytes, dim);
  return bytes;
}

int64_t Hdf5Dataset::grid(size_t axis) const {
  return ceil_div(spec.shape[static_cast<int>(axis)], chunk_shape[axis]);
}

int64_t Hdf5Dataset::num_chunks() const {
  int64_t count = 1;
  for (size_t axis = 0; axis < chunk_shape.size(); ++axis) count = checked_mul(count, grid(axis));
  if (count > kMaxHdf5Chunks) {
    throw Error::input(fmt::format("{} chunks, at most {} are supported", count, kMaxHdf5Chunks))
        .hint("rewrite the file with larger chunks");
  }
  return count;
}

void Hdf5Dataset::check_chunk_grid() const {
  if (static_cast<int>(chunk_shape.size()) != spec.shape.rank()) {
    throw Error::input(fmt::format("chunk shape: {} dimensions, the dataset has {}",
                                   chunk_shape.size(), spec.shape.rank()));
  }
  for (int64_t dim : chunk_shape) {
    if (dim <= 0) throw Error::input("chunk shape: a dimension of 0");
  }
  if (chunk_bytes() > kMaxHdf5Chunk) {
    throw Error::input(
        fmt::format("chunks of {} bytes, at most {} are supported", chunk_bytes(), kMaxHdf5Chunk))
        .hint("rewrite the file with smaller chunks");
  }
  (void)num_chunks();
}

void Hdf5Dataset::check(int64_t file_size) const {
  check_tensor_name(name);
  for (int64_t dim : spec.shape.dims()) {
    if (dim == 0) throw Error::input("shape: a dimension of 0");
  }
  const int64_t bytes = in_context("shape " + spec.shape.to_string(), [&] { return spec.bytes(); });
  if (dtype_bits(spec.dtype) % 8 != 0) throw Error::input("dtype of less than a byte");
  if (!chunked()) {
    if (file_offset < 0 || bytes > file_size || file_offset > file_size - bytes) {
      throw Error::input("its data runs past the end of the file")
          .hint("the file may be truncated");
    }
    return;
  }
  check_chunk_grid();
  if (filters.size() > kMaxHdf5Filters) {
    throw Error::input(
        fmt::format("{} filters, at most {} are possible", filters.size(), kMaxHdf5Filters));
  }
  for (const Hdf5Filter& filter : filters) check_hdf5_filter(filter.id, "");
  if (!fill.empty() && static_cast<int64_t>(fill.size()) != dtype_bytes(spec.dtype)) {
    throw Error::input("fill value: not of the element's size");
  }
  if (static_cast<int64_t>(chunks.size()) != num_chunks()) {
    throw Error::input(
        fmt::format("{} chunks are listed, expected {}", chunks.size(), num_chunks()));
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    in_context(fmt::format("chunk {}", i), [&] { check_chunk(chunks[i], *this, file_size); });
  }
}

std::string encode_hdf5_attributes(const std::map<std::string, std::string>& values) {
  Writer out;
  out.number(static_cast<int64_t>(values.size()));
  for (const auto& [key, value] : values) {
    out.text(key);
    out.text(value);
  }
  return out.take();
}

std::string encode_hdf5_dataset(const Hdf5Dataset& dataset) {
  Writer out;
  out.text(dataset.name);
  out.text(dtype_name(dataset.spec.dtype));
  write_numbers(out, dataset.spec.shape.dims());
  out.number(dataset.big_endian ? 1 : 0);
  out.number(dataset.file_offset);
  write_numbers(out, dataset.chunk_shape);
  out.number(static_cast<int64_t>(dataset.filters.size()));
  for (const Hdf5Filter& filter : dataset.filters) {
    out.number(filter.id);
    out.number(static_cast<int64_t>(filter.params.size()));
    for (unsigned value : filter.params) out.number(value);
  }
  out.text({reinterpret_cast<const char*>(dataset.fill.data()), dataset.fill.size()});
  out.number(static_cast<int64_t>(dataset.chunks.size()));
  for (const Hdf5Chunk& chunk : dataset.chunks) {
    out.number(chunk.address);
    out.number(chunk.size);
    out.number(chunk.skipped);
  }
  return out.take();
}

Hdf5Index decode_hdf5_index(std::string_view bytes) {
  Reader in(bytes);
  Hdf5Index index;
  for (int64_t left = in.count(); left > 0; --left) {
    std::string key = in.text();
    index.attributes[std::move(key)] = in.text();
  }
  while (!in.done()) index.datasets.push_back(read_dataset(in));
  return index;
}

}  // namespace mxfp4
