// Special loops for single axis permutations, chosen by their axes. The generic loop of permute.hpp
// is the definition; each of these equals it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mxfp4::kernels {

// One permutation out = in.reshape(dims).permute(order) of units of `unit_bits`.
struct FastPermute {
  int64_t unit_bits;
  std::span<const int64_t> dims;  // 0: any size
  std::span<const int> order;
  // `dims` are the actual sizes. `in` and `out` do not overlap; no alignment needed.
  void (*forward)(std::span<const int64_t> dims, const std::byte* in, std::byte* out) noexcept;
  void (*inverse)(std::span<const int64_t> dims, const std::byte* in, std::byte* out) noexcept;
};

// Null when the permutation has no fast form.
[[nodiscard]] const FastPermute* find_fast_permute(int64_t unit_bits, std::span<const int64_t> dims,
                                                   std::span<const int> order);

}  // namespace mxfp4::kernels
