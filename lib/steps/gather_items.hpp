// What the files that make a gather plan share.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace mxfp4 {

inline constexpr int64_t kMostGatherBytes = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMostTogether = 32;  // nibbles: 16 bytes
inline constexpr int64_t kLeastQuick = 16;    // bytes of an input, for a run to lie in it

inline uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t magic_of(uint32_t extent) {
  if (std::has_single_bit(extent)) return static_cast<uint32_t>(std::countr_zero(extent));
  return static_cast<uint32_t>((uint64_t{1} << 32) / extent);
}

// Says the quick way of a plan, if it has one: each word is four bytes that the inner chain finds by
// themselves, and their nibbles in another order, perhaps with an element map of the word behind. Four
// words are made at once of 16 bytes that stay together, or of four runs of four bytes. `rest`: nibbles
// that stay together behind the span and its digits.
void add_quick_way(int64_t rest, std::vector<uint32_t>& plan);

}  // namespace mxfp4
