// What the files that make a gather plan share.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace mxfp4 {

inline constexpr int64_t kMostGatherBytes = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMostTogether = 32;  // nibbles: 16 bytes
inline constexpr int64_t kLeastQuick = 16;    // bytes of an input, for a run to lie in it

// A number as a word of a plan.
inline uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }
// What gather_quotient() takes beside this divisor.
inline uint32_t magic_of(uint32_t extent) {
  if (std::has_single_bit(extent)) return static_cast<uint32_t>(std::countr_zero(extent));
  return static_cast<uint32_t>((uint64_t{1} << 32) / extent);
}

// Appends the quick way to a plan, if there is one: each word of the output is four bytes of the input with
// their nibbles in another order, perhaps behind an element map of the whole word. A thread makes four words
// at once of 16 bytes that stay together, or of four runs of four bytes. `rest`: how many nibbles the
// operations behind the inner chain's digits keep together.
void add_quick_way(int64_t rest, std::vector<uint32_t>& plan);

}  // namespace mxfp4
