// The loop behind every axis permutation. Scalar: this is the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/kernels/walk.hpp"

namespace mxfp4::kernels {

// Adds an innermost loop, joined with the one around it where the two are neighbours on both sides.
void add_loop(LoopNest& nest, int64_t size, int64_t in_stride, int64_t out_stride);

// Nest for out = in.reshape(dims).permute(order), writing in ascending order; neighbouring axes
// that stay neighbours are merged. With `invert` the roles of in and out are exchanged, still
// writing in ascending order.
[[nodiscard]] LoopNest permutation_nest(const std::vector<int64_t>& dims,
                                        const std::vector<int>& order, bool invert);

// Moves units of `unit_bytes` bytes. `in` and `out` do not overlap; no alignment needed.
void permute_bytes(const LoopNest& nest, int64_t unit_bytes, const std::byte* in,
                   std::byte* out) noexcept;

// Moves nibbles (even unit = low nibble). The innermost axis of `nest` must have an even size and
// out_stride 1. `in` and `out` do not overlap.
void permute_nibbles(const LoopNest& nest, const std::byte* in, std::byte* out) noexcept;

// Either of them: units of 4 bits, or of whole bytes.
void permute_units(const LoopNest& nest, int64_t unit_bits, const std::byte* in,
                   std::byte* out) noexcept;

}  // namespace mxfp4::kernels
