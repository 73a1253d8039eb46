// Runs a TilePlan with the vector instructions of this machine, or with plain loops where a target
// has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// The bytes to be read next, fetched into the second-level cache meanwhile: pieces of `run_bytes`
// bytes at the offsets `runs` from `base`; a negative offset is skipped.
struct Upcoming {
  const std::byte* base = nullptr;  // null: nothing known
  std::span<const int64_t> runs;
  int64_t run_bytes = 0;
};

// `in` and `out` do not overlap; no alignment needed. With `streaming`, lines go past the caches
// where the plan stores whole lines of an aligned `out`: finish_streaming() (copy.hpp) must follow
// before another thread may look.
void run_tiles(const TilePlan& plan, const std::byte* in, const Upcoming& next, bool streaming,
               std::byte* out) noexcept;

}  // namespace mxfp4::kernels
