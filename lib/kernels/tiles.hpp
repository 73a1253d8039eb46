// Runs a TilePlan with the vector instructions of this machine.
#pragma once

#include <cstddef>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// False on a target without vectors; the caller then uses the definition (permute.hpp).
[[nodiscard]] bool tiles_supported() noexcept;

// `in` and `out` do not overlap; no alignment needed. Output lines that are whole and aligned are
// written past the caches when `streaming`.
void run_tiles(const TilePlan& plan, bool streaming, const std::byte* in, std::byte* out) noexcept;

}  // namespace mxfp4::kernels
