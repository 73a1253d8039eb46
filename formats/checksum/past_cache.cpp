#include "formats/checksum/past_cache.hpp"

#include <algorithm>

#include "formats/checksum/checksum.hpp"
#include "formats/os/uninitialized_bytes.hpp"

namespace mxfp4 {
namespace {

// Large enough for a device's queue, small enough to stay in the cache until it is summed.
constexpr int64_t kPiece = int64_t{4} << 20;

}  // namespace

PositionedFile open_past_cache(const std::filesystem::path& path) {
  PositionedFile file(path);
  file.forget_cached();
  file.make_direct();
  return file;
}

std::string checksum_of_file(const PositionedFile& file, const std::function<void()>& between) {
  Checksum sum;
  UninitializedBytes memory(static_cast<size_t>(file.direct_room(std::min(file.size(), kPiece))));
  for (int64_t at = 0; at < file.size(); at += kPiece) {
    if (between) between();
    sum.update(file.read_direct(at, std::min(kPiece, file.size() - at), memory));
  }
  return sum.hex();
}

}  // namespace mxfp4
