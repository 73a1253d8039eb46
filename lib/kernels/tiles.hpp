// Runs a TilePlan with the vector instructions of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// False on a target without vectors; the caller then uses the definition (permute.hpp).
[[nodiscard]] bool tiles_supported() noexcept;

// What will be read next, to be fetched meanwhile: pieces of `run_bytes`, at `runs`
// from `base`; a negative one is none.
struct Upcoming {
  const std::byte* base = nullptr;  // null: nothing known
  std::span<const int64_t> runs;
  int64_t run_bytes = 0;
};

struct TileHints {
  // Output lines that are whole and aligned go past the caches: finish_streaming() (copy.hpp) must
  // follow before another thread may look.
  bool streaming = false;
  Upcoming next;
};

// `in` and `out` do not overlap; no alignment needed.
void run_tiles(const TilePlan& plan, const TileHints& hints, const std::byte* in,
               std::byte* out) noexcept;

}  // namespace mxfp4::kernels
