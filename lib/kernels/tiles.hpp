// Runs a TilePlan with the vector instructions of this machine, or with plain loops where a target
// has none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/kernels/fetcher.hpp"
#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// `in` and `out` do not overlap; no alignment needed. With `streaming`, lines go past the caches
// where the plan stores whole lines of an aligned `out`: finish_streaming() (copy.hpp) must follow
// before another thread may look.
void run_tiles(const TilePlan& plan, const std::byte* in, const Upcoming& next, bool streaming,
               std::byte* out) noexcept;

}  // namespace mxfp4::kernels
