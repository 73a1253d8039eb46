#include "formats/checksum/past_cache.hpp"

#include <algorithm>

#include "formats/checksum/checksum.hpp"
#include "formats/os/uninitialized_bytes.hpp"

namespace mxfp4 {
namespace {

// Large enough for a device's queue, small enough to stay in the cache until it is summed.
constexpr int64_t kDevicePiece = int64_t{4} << 20;

}  // namespace

PositionedFile open_past_cache(const std::filesystem::path& path) {
  PositionedFile file(path);
  file.forget_cached();
  file.make_direct();
  return file;
}

std::string checksum_past_cache(const PositionedFile& file) {
  Checksum sum;
  UninitializedBytes memory(
      static_cast<size_t>(file.direct_room(std::min(file.size(), kDevicePiece))));
  for (int64_t at = 0; at < file.size(); at += kDevicePiece) {
    sum.update(file.read_direct(at, std::min(kDevicePiece, file.size() - at), memory));
  }
  return sum.hex();
}

}  // namespace mxfp4
