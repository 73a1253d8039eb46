// Runs a TilePlan with the vector instructions of this machine.
#pragma once

#include <cstddef>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// False on a target without vectors; the caller then uses the definition (permute.hpp).
[[nodiscard]] bool tiles_supported() noexcept;

struct TileHints {
  // Output lines that are whole and aligned go past the caches: finish_streaming() (copy.hpp) must
  // follow before another thread may look.
  bool streaming = false;
  int64_t ahead = 0;  // what lies so many bytes after the input will be next; 0: nothing known
};

// `in` and `out` do not overlap; no alignment needed.
void run_tiles(const TilePlan& plan, const TileHints& hints, const std::byte* in,
               std::byte* out) noexcept;

}  // namespace mxfp4::kernels
