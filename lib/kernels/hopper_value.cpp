// Highway on registers of one or two 16-byte blocks; plain words where a target has no vectors.
//
// A patch is 32 columns of the rows n, n + 1 and n + 8, n + 9. Rows n and n + 8 give the first 64
// of its 128 packed bytes, the others the last; with two blocks a register works on both. Byte c =
// 8j + 4h + t of row n holds codes a (h = 0) and c (h = 1) of word 4t + j, low nibbles for the
// word's low half; row n + 8 holds b and d. Each byte of a half is the union of what each code
// contributes: 16 values a code, so a table in a register.
#include "lib/kernels/hopper_value.hpp"

#include "lib/kernels/hopper_mix.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/hopper_value.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPatchColumns = 32;
constexpr int64_t kPackedBytes = 64;  // of two rows of a patch

#if HWY_TARGET == HWY_SCALAR

using hopper::Codes;
using hopper::mix;
using hopper::unmix;

void pack_rows(const uint8_t* row, const uint8_t* row8, uint8_t* out) {
  for (int t = 0; t < 4; ++t) {
    for (int j = 0; j < 4; ++j) {
      const uint32_t a = row[8 * j + t];
      const uint32_t b = row8[8 * j + t];
      const uint32_t c = row[8 * j + 4 + t];
      const uint32_t d = row8[8 * j + 4 + t];
      const uint32_t word = mix({a, b, c, d}) | mix({a >> 4, b >> 4, c >> 4, d >> 4}) << 16;
      for (int i = 0; i < 4; ++i) *out++ = static_cast<uint8_t>(word >> (8 * i));
    }
  }
}

void unpack_rows(const uint8_t* in, uint8_t* row, uint8_t* row8) {
  for (int t = 0; t < 4; ++t) {
    for (int j = 0; j < 4; ++j, in += 4) {
      const Codes low = unmix(in[0] | uint32_t{in[1]} << 8);
      const Codes high = unmix(in[2] | uint32_t{in[3]} << 8);
      row[8 * j + t] = static_cast<uint8_t>(low.a | high.a << 4);
      row8[8 * j + t] = static_cast<uint8_t>(low.b | high.b << 4);
      row[8 * j + 4 + t] = static_cast<uint8_t>(low.c | high.c << 4);
      row8[8 * j + 4 + t] = static_cast<uint8_t>(low.d | high.d << 4);
    }
  }
}

void pack_row_pairs(int64_t columns, const uint8_t* in, bool, uint8_t* out) {
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; ++s, out += kPackedBytes) {
      const uint8_t* row = in + s * columns + column;
      pack_rows(row, row + 8 * columns, out);
    }
  }
}

void unpack_row_pairs(int64_t columns, const uint8_t* in, bool, uint8_t* out) {
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; ++s, in += kPackedBytes) {
      uint8_t* row = out + s * columns + column;
      unpack_rows(in, row, row + 8 * columns);
    }
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using hopper::Table;

const hn::CappedTag<uint8_t, 32> kBytes;
const hn::Repartition<uint16_t, decltype(kBytes)> kHalves;
const hn::Repartition<uint32_t, decltype(kBytes)> kWords;
const hn::Repartition<uint64_t, decltype(kBytes)> kQuads;
using Bytes = hn::Vec<decltype(kBytes)>;
constexpr int64_t kBlocks =
    hn::MaxLanes(kBytes) / 16;  // rows n and n + 1 at once, or one after another

// Byte orders of a block. Of two values of j of a row: first a by (t, j), then c.
constexpr Table kRowToCodes = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
// A code by (t, j) to (j, t).
constexpr Table kTurn = hopper::table([](uint32_t i) { return i % 4 * 4 + i / 4; });

HWY_INLINE Bytes register_of(const Table& bytes) { return hn::LoadDup128(kBytes, bytes.data()); }

// Row n's block, and row n + 1's `columns` further.
HWY_INLINE Bytes load_rows(const uint8_t* from, int64_t columns) {
  if constexpr (kBlocks == 1) {
    return hn::LoadU(kBytes, from);
  } else {
    const hn::Half<decltype(kBytes)> half;
    return hn::Combine(kBytes, hn::LoadU(half, from + columns), hn::LoadU(half, from));
  }
}

HWY_INLINE void store_rows(Bytes bytes, uint8_t* to, int64_t columns) {
  if constexpr (kBlocks == 1) {
    hn::StoreU(bytes, kBytes, to);
  } else {
    const hn::Half<decltype(kBytes)> half;
    hn::StoreU(hn::LowerHalf(half, bytes), half, to);
    hn::StoreU(hn::UpperHalf(half, bytes), half, to + columns);
  }
}

HWY_INLINE Bytes low_nibbles(Bytes x) { return hn::And(x, hn::Set(kBytes, uint8_t{0x0F})); }

HWY_INLINE Bytes high_nibbles(Bytes x) {
  return low_nibbles(hn::BitCast(kBytes, hn::ShiftRight<4>(hn::BitCast(kHalves, x))));
}

HWY_INLINE Bytes low_bits(Bytes x) { return hn::And(x, hn::Set(kBytes, uint8_t{0x07})); }

// Nibbles to high nibbles.
HWY_INLINE Bytes raised(Bytes x) {
  return hn::BitCast(kBytes, hn::ShiftLeft<4>(hn::BitCast(kHalves, x)));
}

template <class D>
HWY_INLINE Bytes lower(D d, Bytes x, Bytes y) {
  return hn::BitCast(kBytes, hn::InterleaveLower(d, hn::BitCast(d, x), hn::BitCast(d, y)));
}

template <class D>
HWY_INLINE Bytes upper(D d, Bytes x, Bytes y) {
  return hn::BitCast(kBytes, hn::InterleaveUpper(d, hn::BitCast(d, x), hn::BitCast(d, y)));
}

// Words of t = 0..3, by j; a block for each of two rows.
struct Packed {
  Bytes t0, t1, t2, t3;
};

// Codes of one nibble of the words, by (t, j): a nibble a byte.
struct CodeBytes {
  Bytes a, b, c, d;
};

struct HalfBytes {
  Bytes low, high;
};

class Packer {
 public:
  Packer()
      : order_(register_of(kRowToCodes)),
        low_of_a_(register_of(hopper::kLowOfA)),
        low_of_b_(register_of(hopper::kLowOfB)),
        high_of_a_(register_of(hopper::kHighOfA)),
        high_of_b_(register_of(hopper::kHighOfB)),
        high_of_c_(register_of(hopper::kHighOfC)),
        high_of_d_(register_of(hopper::kHighOfD)) {}

  HWY_INLINE Packed run(const uint8_t* row, const uint8_t* row8, int64_t columns) const {
    const Bytes x = hn::TableLookupBytes(load_rows(row, columns), order_);
    const Bytes y = hn::TableLookupBytes(load_rows(row + 16, columns), order_);
    const Bytes x8 = hn::TableLookupBytes(load_rows(row8, columns), order_);
    const Bytes y8 = hn::TableLookupBytes(load_rows(row8 + 16, columns), order_);
    const Bytes a = lower(kHalves, x, y);
    const Bytes c = upper(kHalves, x, y);
    const Bytes b = lower(kHalves, x8, y8);
    const Bytes d = upper(kHalves, x8, y8);
    const HalfBytes first = mixed({low_nibbles(a), low_nibbles(b), low_nibbles(c), low_nibbles(d)});
    const HalfBytes second =
        mixed({high_nibbles(a), high_nibbles(b), high_nibbles(c), high_nibbles(d)});
    const Bytes first01 = lower(kBytes, first.low, first.high);
    const Bytes first23 = upper(kBytes, first.low, first.high);
    const Bytes second01 = lower(kBytes, second.low, second.high);
    const Bytes second23 = upper(kBytes, second.low, second.high);
    return {lower(kHalves, first01, second01), upper(kHalves, first01, second01),
            lower(kHalves, first23, second23), upper(kHalves, first23, second23)};
  }

 private:
  HWY_INLINE HalfBytes mixed(const CodeBytes& of) const {
    const auto from = [](Bytes bits, Bytes code)
                          HWY_ATTR { return hn::TableLookupBytes(bits, code); };
    return {hn::Or(hn::Or(from(low_of_a_, of.a), from(low_of_b_, of.b)), low_bits(of.c)),
            hn::Or(hn::Or(from(high_of_a_, of.a), from(high_of_b_, of.b)),
                   hn::Or(from(high_of_c_, of.c), from(high_of_d_, of.d)))};
  }

  Bytes order_, low_of_a_, low_of_b_, high_of_a_, high_of_b_, high_of_c_, high_of_d_;
};

// The four parts of a patch of a row pair: 16 bytes each of rows n (and n + 1) and n + 8 (n + 9).
struct Rows {
  Bytes row, row_second, row8, row8_second;
};

class Unpacker {
 public:
  Unpacker()
      : turn_(register_of(kTurn)),
        a_of_1_(register_of(hopper::kAOf1)),
        a_of_2_(register_of(hopper::kAOf2)),
        a_of_3_(register_of(hopper::kAOf3)),
        b_of_0_(register_of(hopper::kBOf0)),
        b_of_1_(register_of(hopper::kBOf1)),
        b_of_3_(register_of(hopper::kBOf3)),
        c_of_2_(register_of(hopper::kCOf2)),
        d_of_2_(register_of(hopper::kDOf2)),
        d_of_3_(register_of(hopper::kDOf3)) {}

  HWY_INLINE Rows run(const Packed& words) const {
    // Bytes 0 to 3 of every word, by (t, j).
    const Bytes t0 = hn::TableLookupBytes(words.t0, turn_);
    const Bytes t1 = hn::TableLookupBytes(words.t1, turn_);
    const Bytes t2 = hn::TableLookupBytes(words.t2, turn_);
    const Bytes t3 = hn::TableLookupBytes(words.t3, turn_);
    const Bytes low01 = lower(kWords, t0, t1);
    const Bytes high01 = upper(kWords, t0, t1);
    const Bytes low23 = lower(kWords, t2, t3);
    const Bytes high23 = upper(kWords, t2, t3);
    const CodeBytes first = unmixed({lower(kQuads, low01, low23), upper(kQuads, low01, low23)});
    const CodeBytes second =
        unmixed({lower(kQuads, high01, high23), upper(kQuads, high01, high23)});
    const Bytes a = by_row(first.a, second.a);
    const Bytes b = by_row(first.b, second.b);
    const Bytes c = by_row(first.c, second.c);
    const Bytes d = by_row(first.d, second.d);
    return {lower(kWords, a, c), upper(kWords, a, c), lower(kWords, b, d), upper(kWords, b, d)};
  }

 private:
  HWY_INLINE CodeBytes unmixed(const HalfBytes& half) const {
    const auto from = [](Bytes bits, Bytes nibble)
                          HWY_ATTR { return hn::TableLookupBytes(bits, nibble); };
    const Bytes n0 = low_nibbles(half.low);
    const Bytes n1 = high_nibbles(half.low);
    const Bytes n2 = low_nibbles(half.high);
    const Bytes n3 = high_nibbles(half.high);
    return {hn::Or(hn::Or(from(a_of_1_, n1), from(a_of_2_, n2)), from(a_of_3_, n3)),
            hn::Or(hn::Or(from(b_of_0_, n0), from(b_of_1_, n1)), from(b_of_3_, n3)),
            hn::Or(low_bits(n0), from(c_of_2_, n2)), hn::Or(from(d_of_2_, n2), from(d_of_3_, n3))};
  }

  // Both nibbles of a code's bytes, by (j, t).
  HWY_INLINE Bytes by_row(Bytes low, Bytes high) const {
    return hn::TableLookupBytes(hn::Or(low, raised(high)), turn_);
  }

  Bytes turn_, a_of_1_, a_of_2_, a_of_3_, b_of_0_, b_of_1_, b_of_3_, c_of_2_, d_of_2_, d_of_3_;
};

// 64 bytes of each block: the first's to `to`, the second's `apart` further. Whole lines if
// `streaming`.
HWY_INLINE void store_lines(const Packed& v, bool streaming, uint8_t* to, int64_t apart) {
  const auto put = [streaming](Bytes bytes, uint8_t* at) HWY_ATTR {
    if (streaming) {
      hn::Stream(bytes, kBytes, at);
    } else {
      hn::StoreU(bytes, kBytes, at);
    }
  };
  if constexpr (kBlocks == 1) {
    put(v.t0, to);
    put(v.t1, to + 16);
    put(v.t2, to + 32);
    put(v.t3, to + 48);
  } else {
    put(hn::ConcatLowerLower(kBytes, v.t1, v.t0), to);
    put(hn::ConcatLowerLower(kBytes, v.t3, v.t2), to + 32);
    put(hn::ConcatUpperUpper(kBytes, v.t1, v.t0), to + apart);
    put(hn::ConcatUpperUpper(kBytes, v.t3, v.t2), to + apart + 32);
  }
}

HWY_INLINE Packed load_packed(const uint8_t* in) {
  return {load_rows(in, kPackedBytes), load_rows(in + 16, kPackedBytes),
          load_rows(in + 32, kPackedBytes), load_rows(in + 48, kPackedBytes)};
}

// Rows n, n + 1, n + 8 and n + 9 of `columns` bytes from `in` on to 4 * columns bytes.
void pack_row_pairs(int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const Packer packer;
  const uint8_t* in8 = in + 8 * columns;
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; s += kBlocks, out += kBlocks * kPackedBytes) {
      const int64_t at = s * columns + column;
      store_lines(packer.run(in + at, in8 + at, columns), streaming, out, kPackedBytes);
    }
  }
}

// The inverse. Two patches side by side have whole lines of each row.
void unpack_row_pairs(int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const Unpacker unpacker;
  uint8_t* out8 = out + 8 * columns;
  int64_t column = 0;
  for (; column + kPatchColumns < columns; column += 2 * kPatchColumns) {
    for (int64_t s = 0; s < 2; s += kBlocks) {
      const uint8_t* from = in + 4 * column + s * kPackedBytes;
      const int64_t at = s * columns + column;
      const Rows left = unpacker.run(load_packed(from));
      const Rows right = unpacker.run(load_packed(from + 2 * kPackedBytes));
      store_lines({left.row, left.row_second, right.row, right.row_second}, streaming, out + at,
                  columns);
      store_lines({left.row8, left.row8_second, right.row8, right.row8_second}, streaming,
                  out8 + at, columns);
    }
  }
  if (column == columns) return;
  for (int64_t s = 0; s < 2; s += kBlocks) {
    const int64_t at = s * columns + column;
    const Rows rows = unpacker.run(load_packed(in + 4 * column + s * kPackedBytes));
    store_rows(rows.row, out + at, columns);
    store_rows(rows.row_second, out + at + 16, columns);
    store_rows(rows.row8, out8 + at, columns);
    store_rows(rows.row8_second, out8 + at + 16, columns);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

constexpr int64_t kLine = 64;

bool is_line(const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) % kLine == 0; }

void pack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out);
  for (int64_t row = 0; row < rows; row += 16) {
    for (int64_t t = 0; t < 4; ++t, out += 4 * columns) {
      pack_row_pairs(columns, in + (row + 2 * t) * columns, lines, out);
    }
  }
}

void unpack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out) && columns % kLine == 0;
  for (int64_t row = 0; row < rows; row += 16) {
    for (int64_t t = 0; t < 4; ++t, in += 4 * columns) {
      unpack_row_pairs(columns, in, lines, out + (row + 2 * t) * columns);
    }
  }
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

void hopper_value_pack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                       std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), streaming, reinterpret_cast<uint8_t*>(out));
}

void hopper_value_unpack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                         std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(unpack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), streaming, reinterpret_cast<uint8_t*>(out));
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
