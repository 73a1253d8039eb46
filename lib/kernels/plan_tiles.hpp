// Makes the tile plan of a permutation.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/kernels/tile_plan.hpp"

namespace mxfp4::kernels {

// The plan for moving units of `unit_bits` (4, 8, 16, 32) as `nest` says; empty when the nest has
// too short runs of power-of-two size on either side, or is a copy of long runs already.
[[nodiscard]] std::optional<TilePlan> tile_plan(const LoopNest& nest, int64_t unit_bits);

}  // namespace mxfp4::kernels
