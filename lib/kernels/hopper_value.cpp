// Highway on blocks of 128 bits; plain words where a target has no vectors. One block takes 32
// columns of rows n and n + 8 (bytes a, c and b, d of the words) and gives 16 words. Byte c = 8j +
// 4h + t of a row: t and j number the words, h tells a, b from c, d.
#include "lib/kernels/hopper_value.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/hopper_value.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

uint32_t mix(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (a & 8) << 12 | (d & 8) << 11 | (d & 1) << 13 | (b & 8) << 9 | (d & 6) << 9 |
         (c & 8) << 6 | (a & 7) << 6 | (b & 7) << 3 | (c & 7);
}

void pack_block(const uint8_t* row, const uint8_t* row8, uint8_t* out) {
  for (int t = 0; t < 4; ++t) {
    for (int j = 0; j < 4; ++j) {
      const uint32_t a = row[8 * j + t];
      const uint32_t b = row8[8 * j + t];
      const uint32_t c = row[8 * j + 4 + t];
      const uint32_t d = row8[8 * j + 4 + t];
      const uint32_t word = mix(a, b, c, d) | mix(a >> 4, b >> 4, c >> 4, d >> 4) << 16;
      for (int i = 0; i < 4; ++i) *out++ = static_cast<uint8_t>(word >> (8 * i));
    }
  }
}

void unpack_block(const uint8_t* in, uint8_t* row, uint8_t* row8) {
  for (int t = 0; t < 4; ++t) {
    for (int j = 0; j < 4; ++j) {
      uint32_t a = 0;
      uint32_t b = 0;
      uint32_t c = 0;
      uint32_t d = 0;
      for (int high = 0; high < 2; ++high, in += 2) {
        const uint32_t h = in[0] | uint32_t{in[1]} << 8;
        a |= ((h >> 12 & 8) | (h >> 6 & 7)) << (4 * high);
        b |= ((h >> 9 & 8) | (h >> 3 & 7)) << (4 * high);
        c |= ((h >> 6 & 8) | (h & 7)) << (4 * high);
        d |= ((h >> 11 & 8) | (h >> 9 & 6) | (h >> 13 & 1)) << (4 * high);
      }
      row[8 * j + t] = static_cast<uint8_t>(a);
      row8[8 * j + t] = static_cast<uint8_t>(b);
      row[8 * j + 4 + t] = static_cast<uint8_t>(c);
      row8[8 * j + 4 + t] = static_cast<uint8_t>(d);
    }
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

const hn::FixedTag<uint8_t, 16> kBytes;
const hn::FixedTag<uint16_t, 8> kHalves;
const hn::FixedTag<uint32_t, 4> kWords;
const hn::FixedTag<uint64_t, 2> kQuads;
using Bytes = hn::Vec<decltype(kBytes)>;
using Halves = hn::Vec<decltype(kHalves)>;
using Words = hn::Vec<decltype(kWords)>;

struct Four {
  Words v0, v1, v2, v3;
};

Halves low64(Halves x, Halves y) {
  return hn::BitCast(kHalves,
                     hn::InterleaveLower(kQuads, hn::BitCast(kQuads, x), hn::BitCast(kQuads, y)));
}

Halves high64(Halves x, Halves y) {
  return hn::BitCast(kHalves,
                     hn::InterleaveUpper(kQuads, hn::BitCast(kQuads, x), hn::BitCast(kQuads, y)));
}

Four transposed(const Four& m) {
  const auto halves = [](Words x) { return hn::BitCast(kHalves, x); };
  const auto words = [](Halves x) { return hn::BitCast(kWords, x); };
  const Halves low01 = halves(hn::InterleaveLower(kWords, m.v0, m.v1));
  const Halves low23 = halves(hn::InterleaveLower(kWords, m.v2, m.v3));
  const Halves high01 = halves(hn::InterleaveUpper(kWords, m.v0, m.v1));
  const Halves high23 = halves(hn::InterleaveUpper(kWords, m.v2, m.v3));
  return {words(low64(low01, low23)), words(high64(low01, low23)), words(low64(high01, high23)),
          words(high64(high01, high23))};
}

Halves masked(Halves x, uint16_t mask) { return hn::And(x, hn::Set(kHalves, mask)); }

// A code in bits 3..0 and one in bits 11..8 of each lane (a, b or c, d), other bits ignored, to
// their places in a half, and back.
Halves mix_ab(Halves x) {
  return hn::Or(hn::Or(masked(hn::ShiftLeft<6>(x), 0x01C0), masked(hn::ShiftLeft<12>(x), 0x8000)),
                hn::Or(masked(hn::ShiftRight<5>(x), 0x0038), masked(hn::ShiftLeft<1>(x), 0x1000)));
}

Halves mix_cd(Halves x) {
  const Halves c = hn::Or(masked(x, 0x0007), masked(hn::ShiftLeft<6>(x), 0x0200));
  const Halves d = hn::Or(masked(hn::ShiftLeft<1>(x), 0x0C00), masked(hn::ShiftLeft<5>(x), 0x2000));
  return hn::Or(hn::Or(c, d), masked(hn::ShiftLeft<3>(x), 0x4000));
}

Halves unmix_ab(Halves h) {
  return hn::Or(hn::Or(masked(hn::ShiftRight<6>(h), 0x0007), masked(hn::ShiftRight<12>(h), 0x0008)),
                hn::Or(masked(hn::ShiftLeft<5>(h), 0x0700), masked(hn::ShiftRight<1>(h), 0x0800)));
}

Halves unmix_cd(Halves h) {
  const Halves c = hn::Or(masked(h, 0x0007), masked(hn::ShiftRight<6>(h), 0x0008));
  const Halves d =
      hn::Or(masked(hn::ShiftRight<1>(h), 0x0600), masked(hn::ShiftRight<5>(h), 0x0100));
  return hn::Or(hn::Or(c, d), masked(hn::ShiftRight<3>(h), 0x0800));
}

// 16 bytes of each row, two values of j, to the words of each j in order of t.
void pack_two(const uint8_t* row, const uint8_t* row8, Words& first, Words& second) {
  const Bytes ac = hn::LoadU(kBytes, row);
  const Bytes bd = hn::LoadU(kBytes, row8);
  const Halves j0 = hn::BitCast(kHalves, hn::InterleaveLower(kBytes, ac, bd));
  const Halves j1 = hn::BitCast(kHalves, hn::InterleaveUpper(kBytes, ac, bd));
  const Halves ab = low64(j0, j1);
  const Halves cd = high64(j0, j1);
  const Halves low = hn::Or(mix_ab(ab), mix_cd(cd));
  const Halves high = hn::Or(mix_ab(hn::ShiftRight<4>(ab)), mix_cd(hn::ShiftRight<4>(cd)));
  first = hn::BitCast(kWords, hn::InterleaveLower(kHalves, low, high));
  second = hn::BitCast(kWords, hn::InterleaveUpper(kHalves, low, high));
}

void unpack_two(Words first, Words second, uint8_t* row, uint8_t* row8) {
  const Halves j0 = hn::BitCast(kHalves, first);
  const Halves j1 = hn::BitCast(kHalves, second);
  const Halves low = hn::ConcatEven(kHalves, j1, j0);
  const Halves high = hn::ConcatOdd(kHalves, j1, j0);
  const Halves ab = hn::Or(unmix_ab(low), hn::ShiftLeft<4>(unmix_ab(high)));
  const Halves cd = hn::Or(unmix_cd(low), hn::ShiftLeft<4>(unmix_cd(high)));
  const Bytes pairs0 = hn::BitCast(kBytes, low64(ab, cd));
  const Bytes pairs1 = hn::BitCast(kBytes, high64(ab, cd));
  hn::StoreU(hn::ConcatEven(kBytes, pairs1, pairs0), kBytes, row);
  hn::StoreU(hn::ConcatOdd(kBytes, pairs1, pairs0), kBytes, row8);
}

Words load(const uint8_t* from) { return hn::BitCast(kWords, hn::LoadU(kBytes, from)); }

void store(Words words, uint8_t* to) { hn::StoreU(hn::BitCast(kBytes, words), kBytes, to); }

void pack_block(const uint8_t* row, const uint8_t* row8, uint8_t* out) {
  Four by_j;
  pack_two(row, row8, by_j.v0, by_j.v1);
  pack_two(row + 16, row8 + 16, by_j.v2, by_j.v3);
  const Four by_t = transposed(by_j);
  store(by_t.v0, out);
  store(by_t.v1, out + 16);
  store(by_t.v2, out + 32);
  store(by_t.v3, out + 48);
}

void unpack_block(const uint8_t* in, uint8_t* row, uint8_t* row8) {
  const Four by_j = transposed({load(in), load(in + 16), load(in + 32), load(in + 48)});
  unpack_two(by_j.v0, by_j.v1, row, row8);
  unpack_two(by_j.v2, by_j.v3, row + 16, row8 + 16);
}

#endif  // HWY_TARGET == HWY_SCALAR

// Calls block(offset of row n's 32 bytes, offset of row n + 8's, offset of the 64 packed bytes).
template <class Block>
void for_each_block(int64_t rows, int64_t columns, Block block) {
  for (int64_t pair = 0; pair < rows / 2; ++pair) {
    // Row n = 16m + 2 t0 + s, all but those with bit 3 set.
    const int64_t m = pair / 8;
    const int64_t t0 = pair / 2 % 4;
    const int64_t s = pair % 2;
    const int64_t row = (16 * m + 2 * t0 + s) * columns;
    const int64_t packed = (4 * m + t0) * 4 * columns + 64 * s;
    for (int64_t column = 0; column < columns; column += 32) {
      block(row + column, row + 8 * columns + column, packed + 4 * column);
    }
  }
}

void pack(int64_t rows, int64_t columns, const uint8_t* in, uint8_t* out) {
  for_each_block(rows, columns, [&](int64_t row, int64_t row8, int64_t packed) HWY_ATTR {
    pack_block(in + row, in + row8, out + packed);
  });
}

void unpack(int64_t rows, int64_t columns, const uint8_t* in, uint8_t* out) {
  for_each_block(rows, columns, [&](int64_t row, int64_t row8, int64_t packed) HWY_ATTR {
    unpack_block(in + packed, out + row, out + row8);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mxfp4::kernels {
namespace {
HWY_EXPORT(pack);
HWY_EXPORT(unpack);
}  // namespace

void hopper_value_pack(int64_t rows, int64_t columns, const std::byte* in,
                       std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out));
}

void hopper_value_unpack(int64_t rows, int64_t columns, const std::byte* in,
                         std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(unpack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out));
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
