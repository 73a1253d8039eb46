#include "tests/golden/digest_of.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace mxfp4::test {
namespace {

using State = std::array<uint32_t, 8>;

// The first 32 bits of the fraction of a root of the n-th prime: square roots start the state, cube
// roots are the round constants. 64-bit mantissas of long double hold them exactly enough.
template <size_t N>
std::array<uint32_t, N> prime_root_bits(long double (*root)(long double)) {
  std::array<uint32_t, N> bits{};
  size_t found = 0;
  for (int candidate = 2; found < N; ++candidate) {
    bool prime = true;
    for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
    if (!prime) continue;
    const long double value = root(static_cast<long double>(candidate));
    bits[found++] = static_cast<uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return bits;
}

void add_block(State& state, const std::byte* block) {
  static const auto kRound =
      prime_root_bits<64>([](long double x) -> long double { return std::cbrt(x); });
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | std::to_integer<uint32_t>(block[4 * i + b]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15];
    const uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State add = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += add[i];
}

}  // namespace

std::string digest_of(ConstBytes bytes) {
  State state = prime_root_bits<8>([](long double x) -> long double { return std::sqrt(x); });
  const size_t whole = bytes.size() / 64 * 64;
  for (size_t at = 0; at < whole; at += 64) add_block(state, bytes.data() + at);

  std::vector<std::byte> tail(bytes.begin() + static_cast<ptrdiff_t>(whole), bytes.end());
  tail.push_back(std::byte{0x80});
  while (tail.size() % 64 != 56) tail.push_back(std::byte{0});
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8)
    tail.push_back(static_cast<std::byte>(bits >> shift));
  for (size_t at = 0; at < tail.size(); at += 64) add_block(state, tail.data() + at);

  std::string text;
  for (uint32_t word : state) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace mxfp4::test
