#include "lib/plan/frames.hpp"

namespace mxfp4 {

std::vector<int64_t> frame_sizes(int64_t granules, int64_t granule_bytes) {
  std::vector<int64_t> sizes;
  const auto cut = [&sizes](int64_t bytes) {
    for (; bytes > 0; bytes -= kFrameBytes) sizes.push_back(std::min(bytes, kFrameBytes));
  };
  if (granule_bytes >= kFrameBytes) {
    for (int64_t g = 0; g < granules; ++g) cut(granule_bytes);
    return sizes;
  }
  const int64_t together = granules_per_frame(granule_bytes);
  for (int64_t g = 0; g < granules; g += together) {
    cut(std::min(together, granules - g) * granule_bytes);
  }
  return sizes;
}

}  // namespace mxfp4
