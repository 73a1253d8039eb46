// A faster loop for the nibble permutations of tensor-core layouts: those whose every output word
// of 32 bits holds both nibbles of four input bytes, in the same order in each word. Then four
// table lookups make a word, and four take one apart. permute_nibbles is the definition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mxfp4::kernels {

using WordTables = std::array<std::array<uint32_t, 256>, 4>;

// The output is written in runs of whole words; all runs have the same inner structure.
struct NibbleWords {
  std::vector<int64_t> run_count;   // axes over the runs, outermost first
  std::vector<int64_t> run_stride;  // input bytes of a step along each
  std::vector<int32_t> from;        // four input byte offsets for each word of a run
  WordTables spread;                // [slot][input byte]: its bits in the word
  WordTables collect;               // [i][byte i of the word]: its bits in the four input bytes
};

// The plan for out = in.reshape(dims).permute(order) in nibbles; empty when the permutation is not
// of that kind. No dimension is zero.
[[nodiscard]] std::optional<NibbleWords> nibble_words(const std::vector<int64_t>& dims,
                                                      const std::vector<int>& order);

// Forward and inverse. `in` and `out` do not overlap; no alignment needed.
void gather_nibble_words(const NibbleWords& words, const std::byte* in, std::byte* out) noexcept;
void scatter_nibble_words(const NibbleWords& words, const std::byte* in, std::byte* out) noexcept;

}  // namespace mxfp4::kernels
