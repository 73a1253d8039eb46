#include "formats/hdf5/chunk_lengths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr uint64_t kUnknown = ~uint64_t{0};

// The bytes that a zlib stream decodes to; kUnknown if it is none.
uint64_t inflated_bytes(std::span<unsigned char> stream) {
  std::array<unsigned char, size_t{1} << 16> out{};
  z_stream state{};
  if (inflateInit(&state) != Z_OK) return kUnknown;
  state.next_in = stream.data();
  state.avail_in = static_cast<uInt>(stream.size());
  int code = Z_OK;
  while (code == Z_OK) {
    state.next_out = out.data();
    state.avail_out = static_cast<uInt>(out.size());
    code = inflate(&state, Z_NO_FLUSH);
  }
  const uint64_t total = state.total_out;
  inflateEnd(&state);
  return code == Z_STREAM_END ? total : kUnknown;
}

// What the filters make of a stored chunk, the last one first; bit i of `skipped`: not filter i.
uint64_t decoded_bytes(std::span<unsigned char> stored, std::span<const H5Z_filter_t> filters,
                       uint32_t skipped) {
  uint64_t size = stored.size();
  bool unpacked = false;
  for (size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    if (filters[i] == H5Z_FILTER_FLETCHER32) {
      if (size < 4) return kUnknown;
      size -= 4;
    } else if (filters[i] == H5Z_FILTER_DEFLATE || filters[i] == kZstdFilter) {
      if (unpacked) return kUnknown;  // packed twice
      unpacked = true;
      size = filters[i] == H5Z_FILTER_DEFLATE
                 ? inflated_bytes(stored.first(static_cast<size_t>(size)))
                 : ZSTD_getFrameContentSize(stored.data(), static_cast<size_t>(size));
    }
  }
  return size;
}

}  // namespace

ChunkLengths::ChunkLengths(hid_t dataset, size_t width) : dataset_(dataset) {
  constexpr std::string_view kFailed = "dataset cannot be opened";
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose, kFailed);
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return;
  const int filters = H5Pget_nfilters(list.get());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    size_t parameters = 0;
    filters_.push_back(H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &parameters,
                                      nullptr, 0, nullptr, nullptr));
  }
  if (filters_.empty()) return;  // the library reads the bytes of a chunk
  chunk_.resize(H5S_MAX_RANK);
  const int rank = H5Pget_chunk(list.get(), H5S_MAX_RANK, chunk_.data());
  hdf5_check(rank, kFailed);
  chunk_.resize(static_cast<size_t>(rank));
  bytes_ = width;
  for (const hsize_t extent : chunk_) bytes_ *= extent;
}

void ChunkLengths::check(std::span<const hsize_t> first, std::span<const hsize_t> extent) {
  if (chunk_.empty()) return;
  std::vector<hsize_t> begin;
  for (size_t axis = 0; axis < chunk_.size(); ++axis) {
    begin.push_back(first[axis] / chunk_[axis] * chunk_[axis]);
  }
  std::vector<hsize_t> at = begin;
  while (true) {
    if (checked_.insert(at).second) check_chunk(at);
    size_t axis = chunk_.size();
    while (axis-- > 0) {
      at[axis] += chunk_[axis];
      if (at[axis] < first[axis] + extent[axis]) break;
      at[axis] = begin[axis];
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

void ChunkLengths::check_chunk(const std::vector<hsize_t>& offset) {
  constexpr std::string_view kFailed = "cannot be read";
  hsize_t stored = 0;
  hdf5_check(H5Dget_chunk_storage_size(dataset_, offset.data(), &stored), kFailed);
  if (stored == 0) return;  // missing: the library fills
  std::vector<unsigned char> bytes(stored);
  uint32_t skipped = 0;
  hdf5_check(H5Dread_chunk(dataset_, H5P_DEFAULT, offset.data(), &skipped, bytes.data()), kFailed);
  if (decoded_bytes(bytes, filters_, skipped) == bytes_) return;
  throw Error::input(fmt::format("the chunk at {} does not decode to the {} bytes of a chunk",
                                 fmt::join(offset, ","), bytes_));
}

}  // namespace mxfp4
