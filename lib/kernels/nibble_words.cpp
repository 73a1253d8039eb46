#include "lib/kernels/nibble_words.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "lib/kernels/permute.hpp"

namespace mxfp4::kernels {
namespace {

constexpr size_t kWordNibbles = 8;
constexpr size_t kWordBytes = 4;
// Keeps the offset table of a run in the first-level cache.
constexpr int64_t kLongestRun = 4096;  // nibbles

// Where nibble P of a word comes from: slot of the input byte and which half of it.
struct Origin {
  size_t slot;
  unsigned half;
  friend bool operator==(const Origin&, const Origin&) = default;
};
using WordPattern = std::array<Origin, kWordNibbles>;

// Source positions, in nibbles, of a run over the axes of `nest` from `first` on.
std::vector<int64_t> run_sources(const LoopNest& nest, size_t first) {
  std::vector<int64_t> sources = {0};
  for (size_t axis = first; axis < nest.size.size(); ++axis) {
    std::vector<int64_t> next;
    next.reserve(sources.size() * static_cast<size_t>(nest.size[axis]));
    for (int64_t base : sources) {
      for (int64_t i = 0; i < nest.size[axis]; ++i) {
        next.push_back(base + i * nest.in_stride[axis]);
      }
    }
    sources = std::move(next);
  }
  return sources;
}

// Fills `bytes` with the word's input bytes in order of first use; empty unless they are four.
std::optional<WordPattern> pattern_of(const int64_t* sources,
                                      std::array<int64_t, kWordBytes>& bytes) {
  WordPattern pattern{};
  size_t used = 0;
  for (size_t p = 0; p < kWordNibbles; ++p) {
    const int64_t byte = sources[p] / 2;
    size_t slot = 0;
    while (slot < used && bytes[slot] != byte) ++slot;
    if (slot == kWordBytes) return std::nullopt;
    if (slot == used) bytes[used++] = byte;
    pattern[p] = {slot, static_cast<unsigned>(sources[p] % 2)};
  }
  return pattern;
}

void fill_tables(const WordPattern& pattern, NibbleWords& words) {
  words.spread = {};
  words.collect = {};
  for (size_t p = 0; p < kWordNibbles; ++p) {
    const auto [slot, half] = pattern[p];
    const size_t in_word = 4 * p;
    const size_t in_bytes = 8 * slot + 4 * half;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      words.spread[slot][byte] |= (byte >> (4 * half) & 15U) << in_word;
      words.collect[p / 2][byte] |= (byte >> (4 * (p % 2)) & 15U) << in_bytes;
    }
  }
}

// Calls body(byte offset of the run's input) for each run in output order.
template <class Body>
void for_each_run(const NibbleWords& words, Body&& body) {
  std::array<int64_t, 16> index{};
  int64_t offset = 0;
  size_t axis = 0;
  do {
    body(offset);
    axis = words.run_count.size();
    while (axis > 0) {
      --axis;
      offset += words.run_stride[axis];
      if (++index[axis] < words.run_count[axis]) break;
      offset -= words.run_stride[axis] * words.run_count[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
  } while (!words.run_count.empty());
}

}  // namespace

std::optional<NibbleWords> nibble_words(const std::vector<int64_t>& dims,
                                        const std::vector<int>& order) {
  const LoopNest nest = permutation_nest(dims, order, false);
  size_t first = nest.size.size();
  int64_t run = 1;
  while (first > 0 && (run % kWordNibbles != 0 || run * nest.size[first - 1] <= kLongestRun)) {
    run *= nest.size[--first];
    if (run > 16 * kLongestRun) return std::nullopt;
  }
  if (run % kWordNibbles != 0) return std::nullopt;

  NibbleWords words;
  for (size_t axis = 0; axis < first; ++axis) {
    if (nest.in_stride[axis] % 2 != 0) return std::nullopt;
    words.run_count.push_back(nest.size[axis]);
    words.run_stride.push_back(nest.in_stride[axis] / 2);
  }
  const std::vector<int64_t> sources = run_sources(nest, first);
  if (std::ranges::max(sources) / 2 > std::numeric_limits<int32_t>::max()) return std::nullopt;

  std::optional<WordPattern> pattern;
  for (size_t at = 0; at < sources.size(); at += kWordNibbles) {
    std::array<int64_t, kWordBytes> bytes{};
    const std::optional<WordPattern> here = pattern_of(sources.data() + at, bytes);
    if (!here || (pattern && *pattern != *here)) return std::nullopt;
    pattern = here;
    for (int64_t byte : bytes) words.from.push_back(static_cast<int32_t>(byte));
  }
  fill_tables(*pattern, words);
  return words;
}

void gather_nibble_words(const NibbleWords& words, const std::byte* in, std::byte* out) noexcept {
  const WordTables& t = words.spread;
  for_each_run(words, [&](int64_t offset) {
    const std::byte* base = in + offset;
    for (size_t i = 0; i < words.from.size(); i += kWordBytes, out += kWordBytes) {
      const int32_t* from = words.from.data() + i;
      const uint32_t word = t[0][std::to_integer<uint8_t>(base[from[0]])] |
                            t[1][std::to_integer<uint8_t>(base[from[1]])] |
                            t[2][std::to_integer<uint8_t>(base[from[2]])] |
                            t[3][std::to_integer<uint8_t>(base[from[3]])];
      std::memcpy(out, &word, kWordBytes);
    }
  });
}

void scatter_nibble_words(const NibbleWords& words, const std::byte* in, std::byte* out) noexcept {
  const WordTables& t = words.collect;
  for_each_run(words, [&](int64_t offset) {
    std::byte* base = out + offset;
    for (size_t i = 0; i < words.from.size(); i += kWordBytes, in += kWordBytes) {
      const int32_t* from = words.from.data() + i;
      uint32_t word = 0;
      std::memcpy(&word, in, kWordBytes);
      const uint32_t bytes =
          t[0][word & 255] | t[1][word >> 8 & 255] | t[2][word >> 16 & 255] | t[3][word >> 24];
      base[from[0]] = static_cast<std::byte>(bytes);
      base[from[1]] = static_cast<std::byte>(bytes >> 8);
      base[from[2]] = static_cast<std::byte>(bytes >> 16);
      base[from[3]] = static_cast<std::byte>(bytes >> 24);
    }
  });
}

}  // namespace mxfp4::kernels
