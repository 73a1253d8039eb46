#include "lib/kernels/sm90_interleave.hpp"

#include <cstring>

namespace mxfp4::kernels {
namespace {

constexpr uint64_t kLowNibbles = 0x0F0F0F0F0F0F0F0F;

uint64_t load(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

void store(std::byte* at, uint64_t word) { std::memcpy(at, &word, sizeof(word)); }

// The low four bytes to the even bytes.
uint64_t spread(uint64_t x) {
  x &= 0xFFFFFFFF;
  x = (x | x << 16) & 0x0000FFFF0000FFFF;
  return (x | x << 8) & 0x00FF00FF00FF00FF;
}

// The even bytes to the low four.
uint64_t gather(uint64_t x) {
  x &= 0x00FF00FF00FF00FF;
  x = (x | x >> 8) & 0x0000FFFF0000FFFF;
  return (x | x >> 16) & 0xFFFFFFFF;
}

// Eight bytes of row a and of row b at l..l+7 to sixteen bytes of one output row.
void interleave_eight(const std::byte* a, const std::byte* b, std::byte* out) {
  const uint64_t va = load(a);
  const uint64_t vb = load(b);
  const uint64_t even = (va & kLowNibbles) | (vb & kLowNibbles) << 4;
  const uint64_t odd = (va >> 4 & kLowNibbles) | (vb & ~kLowNibbles);
  // Bytes 0 4 1 5 2 6 3 7 of each, then even and odd alternating.
  const uint64_t even_pairs = spread(even) | spread(even >> 32) << 8;
  const uint64_t odd_pairs = spread(odd) | spread(odd >> 32) << 8;
  store(out, spread(even_pairs) | spread(odd_pairs) << 8);
  store(out + 8, spread(even_pairs >> 32) | spread(odd_pairs >> 32) << 8);
}

void deinterleave_eight(const std::byte* in, std::byte* a, std::byte* b) {
  const uint64_t first = load(in);
  const uint64_t second = load(in + 8);
  const uint64_t even_pairs = gather(first) | gather(second) << 32;
  const uint64_t odd_pairs = gather(first >> 8) | gather(second >> 8) << 32;
  const uint64_t even = gather(even_pairs) | gather(even_pairs >> 8) << 32;
  const uint64_t odd = gather(odd_pairs) | gather(odd_pairs >> 8) << 32;
  store(a, (even & kLowNibbles) | (odd & kLowNibbles) << 4);
  store(b, (even >> 4 & kLowNibbles) | (odd & ~kLowNibbles));
}

// Calls body(position in row a, position in row b) for every 16 bytes of every pair of rows.
template <class Body>
void for_row_pairs(int64_t row_tiles, int64_t column_tiles, Body&& body) {
  const int64_t row = column_tiles * 32;
  for (int64_t tile = 0; tile < row_tiles; ++tile) {
    for (int64_t y = 0; y < 8; ++y) {
      const int64_t a = (16 * tile + y) * row;
      for (int64_t at = a; at < a + row; at += 16) body(at, at + 8 * row);
    }
  }
}

}  // namespace

void sm90_interleave(int64_t row_tiles, int64_t column_tiles, const std::byte* in,
                     std::byte* out) noexcept {
  for_row_pairs(row_tiles, column_tiles, [&](int64_t a, int64_t b) {
    interleave_eight(in + a, in + b, out + a);
    interleave_eight(in + a + 8, in + b + 8, out + b);
  });
}

void sm90_deinterleave(int64_t row_tiles, int64_t column_tiles, const std::byte* in,
                       std::byte* out) noexcept {
  for_row_pairs(row_tiles, column_tiles, [&](int64_t a, int64_t b) {
    deinterleave_eight(in + a, out + a, out + b);
    deinterleave_eight(in + b, out + a + 8, out + b + 8);
  });
}

}  // namespace mxfp4::kernels
