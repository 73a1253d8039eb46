#include "formats/hdf5/hdf5_filters.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int kDeflate = 1;
constexpr int kShuffle = 2;
constexpr int kFletcher32 = 3;
constexpr int kZstd = 32015;
constexpr int64_t kFletcherBytes = 4;

using Bytes = UninitializedBytes;
// Undoes one filter; the result has at most `limit` bytes.
using Decode = Bytes (*)(const Hdf5Filter&, ConstBytes, size_t limit);

Bytes undo_deflate(const Hdf5Filter& /*filter*/, ConstBytes in, size_t limit) {
  Bytes out(limit);
  uLongf size = limit;
  uLong used = in.size();
  const int status = uncompress2(reinterpret_cast<Bytef*>(out.data()), &size,
                                 reinterpret_cast<const Bytef*>(in.data()), &used);
  if (status != Z_OK) throw Error::input("filter 1 (deflate): damaged data");
  out.resize(size);
  return out;
}

Bytes undo_zstd(const Hdf5Filter& /*filter*/, ConstBytes in, size_t limit) {
  Bytes out(limit);
  const size_t size = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(size) != 0) {
    throw Error::input(
        fmt::format("filter 32015 (zstd): damaged data: {}", ZSTD_getErrorName(size)));
  }
  out.resize(size);
  return out;
}

// Shuffled bytes are byte 0 of every element, then byte 1 of every element, and so on; a rest that
// fills no element follows unchanged.
Bytes undo_shuffle(const Hdf5Filter& filter, ConstBytes in, size_t /*limit*/) {
  const size_t width = filter.params.empty() ? 1 : filter.params[0];
  Bytes out(in.begin(), in.end());
  if (width <= 1 || width > in.size()) return out;
  const size_t elements = in.size() / width;
  for (size_t k = 0; k < width; ++k) {
    for (size_t i = 0; i < elements; ++i) out[i * width + k] = in[k * elements + i];
  }
  return out;
}

Bytes undo_fletcher32(const Hdf5Filter& /*filter*/, ConstBytes in, size_t /*limit*/) {
  if (in.size() < static_cast<size_t>(kFletcherBytes)) {
    throw Error::input("filter 3 (fletcher32): shorter than its checksum");
  }
  const ConstBytes data = in.first(in.size() - static_cast<size_t>(kFletcherBytes));
  uint32_t stored = 0;
  for (size_t i = 0; i < static_cast<size_t>(kFletcherBytes); ++i) {
    stored |= std::to_integer<uint32_t>(in[data.size() + i]) << (8 * i);
  }
  if (stored != hdf5_fletcher32(data)) {
    throw Error::input("filter 3 (fletcher32): wrong checksum: damaged data");
  }
  return {data.begin(), data.end()};
}

struct FilterRow {
  int id;
  std::string_view name;
  Decode decode;  // null: refused
};

constexpr std::array kFilters = {
    FilterRow{kDeflate, "deflate", undo_deflate},
    FilterRow{kShuffle, "shuffle", undo_shuffle},
    FilterRow{kFletcher32, "fletcher32", undo_fletcher32},
    FilterRow{kZstd, "zstd", undo_zstd},
    FilterRow{4, "szip", nullptr},
    FilterRow{5, "nbit", nullptr},
    FilterRow{6, "scaleoffset", nullptr},
    FilterRow{305, "lzo", nullptr},
    FilterRow{307, "bzip2", nullptr},
    FilterRow{32000, "lzf", nullptr},
    FilterRow{32001, "blosc", nullptr},
    FilterRow{32004, "lz4", nullptr},
    FilterRow{32008, "bitshuffle", nullptr},
    FilterRow{32013, "zfp", nullptr},
    FilterRow{32017, "sz", nullptr},
    FilterRow{32026, "blosc2", nullptr},
};

const FilterRow* find_filter(int id) {
  const auto at = std::ranges::find(kFilters, id, &FilterRow::id);
  return at == kFilters.end() ? nullptr : &*at;
}

// The filter's H5Z_func_t: replaces *buf and returns the new length; 0 on failure.
size_t zstd_filter(unsigned flags, size_t num_params, const unsigned* params, size_t length,
                   size_t* capacity, void** buf) {
  const bool decode = (flags & H5Z_FLAG_REVERSE) != 0;
  constexpr uint64_t kMaxDecoded = uint64_t{1} << 32;  // HDF5 allows no larger chunk
  // ZSTD_CONTENTSIZE_UNKNOWN and _ERROR are larger than kMaxDecoded.
  const uint64_t bound =
      decode ? ZSTD_getFrameContentSize(*buf, length) : uint64_t{ZSTD_compressBound(length)};
  if (bound == 0 || bound > kMaxDecoded) return 0;
  void* out = H5allocate_memory(bound, 0);
  if (out == nullptr) return 0;
  const int level = num_params > 0 ? static_cast<int>(params[0]) : ZSTD_CLEVEL_DEFAULT;
  const size_t size = decode ? ZSTD_decompress(out, bound, *buf, length)
                             : ZSTD_compress(out, bound, *buf, length, level);
  if (ZSTD_isError(size) != 0) {
    H5free_memory(out);
    return 0;
  }
  H5free_memory(*buf);
  *buf = out;
  *capacity = bound;
  return size;
}

}  // namespace

void check_hdf5_filter(int id, std::string_view comment) {
  const FilterRow* row = find_filter(id);
  if (row != nullptr && row->decode != nullptr) return;
  const std::string_view name = row != nullptr ? row->name : comment;
  throw Error::input(fmt::format("filter {} ({}) is not supported, only deflate, shuffle, "
                                 "fletcher32 and zstd are",
                                 id, name.empty() ? "unnamed" : name))
      .hint("rewrite the file with deflate (gzip)");
}

UninitializedBytes decode_hdf5_chunk(const std::vector<Hdf5Filter>& filters, uint32_t skipped,
                                     ConstBytes stored, int64_t chunk_bytes) {
  // A checksum that was added before a compression makes what that gives larger than the chunk.
  const size_t limit =
      static_cast<size_t>(chunk_bytes) + filters.size() * static_cast<size_t>(kFletcherBytes);
  Bytes owned;
  ConstBytes current = stored;
  for (size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    owned = find_filter(filters[i].id)->decode(filters[i], current, limit);
    current = owned;
  }
  if (static_cast<int64_t>(current.size()) != chunk_bytes) {
    throw Error::input(
        fmt::format("decodes to {} bytes, expected {}", current.size(), chunk_bytes));
  }
  if (owned.empty()) owned.assign(current.begin(), current.end());
  return owned;
}

uint32_t hdf5_fletcher32(ConstBytes data) {
  constexpr size_t kWordsUntilOverflow = 360;
  const auto fold = [](uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  const size_t words = (data.size() + 1) / 2;
  uint32_t low = 0;
  uint32_t high = 0;
  for (size_t word = 0; word < words;) {
    const size_t end = std::min(words, word + kWordsUntilOverflow);
    for (; word < end; ++word) {
      const size_t second = 2 * word + 1;
      low += std::to_integer<uint32_t>(data[2 * word]) << 8;
      if (second < data.size()) low += std::to_integer<uint32_t>(data[second]);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

void register_zstd_filter() {
  const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                               .id = kZstd,
                               .encoder_present = 1,
                               .decoder_present = 1,
                               .name = "zstd",
                               .can_apply = nullptr,
                               .set_local = nullptr,
                               .filter = zstd_filter};
  if (H5Zregister(&filter) < 0) throw Error::internal("HDF5 does not accept the zstd filter");
}

}  // namespace mxfp4
