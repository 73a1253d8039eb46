// How a tensor is cut into frames. Only the tensor decides, never threads or memory, so the same
// input gives the same file; frames end at granule ends, so one expert can be decoded by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxfp4 {

// Decoded bytes of a full frame. Large enough for zstd's window at level 1, small enough that one
// expert of a large model is several frames and a reader decodes little beyond what it wants.
inline constexpr int64_t kFrameBytes = int64_t{2} << 20;

// Whole granules in one frame; 1 when a granule is a frame or more.
[[nodiscard]] constexpr int64_t granules_per_frame(int64_t granule_bytes) {
  return granule_bytes <= 0 ? 1 : std::max<int64_t>(1, kFrameBytes / granule_bytes);
}

// Decoded sizes of the frames that hold `granules` granules, from a frame's start on. A granule
// larger than kFrameBytes is cut into several frames, the last one shorter.
[[nodiscard]] std::vector<int64_t> frame_sizes(int64_t granules, int64_t granule_bytes);

}  // namespace mxfp4
