// Vector code that hopper_value.cpp and hopper_rows.cpp share; no other file includes it.
//
// A patch is 32 columns of rows n and n + 8: 16 words. Byte c = 8j + 4h + t of row n holds codes a
// (h = 0) and c (h = 1) of word (t, j), low nibbles for the word's low half; row n + 8 holds b and
// d. Each byte of a half is the union of what each code contributes: 16 values a code, so a table
// in a register. A register of two blocks works on the patch of rows n + 1 and n + 9 as well.
//
// Highway's own guard: the text is compiled once for each instruction set.
#if defined(LIB_KERNELS_HOPPER_WORDS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LIB_KERNELS_HOPPER_WORDS_INL_HPP_
#undef LIB_KERNELS_HOPPER_WORDS_INL_HPP_
#else
#define LIB_KERNELS_HOPPER_WORDS_INL_HPP_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "lib/kernels/hopper_mix.hpp"

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPatchColumns = 32;
constexpr int64_t kPackedBytes = 64;  // of the words of a patch
constexpr int64_t kLine = 64;

// The order of a patch's words where they are stored.
enum class WordOrder : uint8_t { kThreadFirst, kColumnFirst };  // word 4t + j, word 4j + t

HWY_INLINE bool is_line(const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) % kLine == 0; }

#if HWY_TARGET == HWY_SCALAR

// The word made of the bytes of row n, from `row` on, and of row n + 8, from `row8` on.
uint32_t packed_word(const uint8_t* row, const uint8_t* row8) {
  const auto half = [&](int shift) {
    const auto code = [shift](uint8_t byte) { return uint32_t{byte} >> shift; };
    return hopper::mix({code(row[0]), code(row8[0]), code(row[4]), code(row8[4])});
  };
  return half(0) | half(4) << 16;
}

void store_word(uint32_t word, uint8_t* to) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(word >> (8 * i));
}

uint32_t load_word(const uint8_t* from) {
  return from[0] | uint32_t{from[1]} << 8 | uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24;
}

void unpack_word(uint32_t word, uint8_t* row, uint8_t* row8) {
  const hopper::Codes low = hopper::unmix(word & 0xFFFF);
  const hopper::Codes high = hopper::unmix(word >> 16);
  row[0] = static_cast<uint8_t>(low.a | high.a << 4);
  row8[0] = static_cast<uint8_t>(low.b | high.b << 4);
  row[4] = static_cast<uint8_t>(low.c | high.c << 4);
  row8[4] = static_cast<uint8_t>(low.d | high.d << 4);
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

// Byte orders of a block as it is loaded, 16 bytes of a row, which are two values of j. kByThread
// puts the bytes of code a first, by (t, j), then the bytes of c; kByColumn orders them by (j, t).
constexpr Table kByThread = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
constexpr Table kByColumn = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
// Puts the 16 bytes of a code from order (t, j) into order (j, t), and back.
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

// The low nibble of each byte as its high nibble; the high nibbles of `x` are 0.
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

// The words of a patch, four a block. q0 to q3 hold t = 0 to 3, each by j, with kThreadFirst, and
// j = 0 to 3, each by t, with kColumnFirst. A second block belongs to the next row.
struct Packed {
  Bytes q0, q1, q2, q3;
};

// The codes of one half of every word, in the words' order: one code a byte.
struct CodeBytes {
  Bytes a, b, c, d;
};

struct HalfBytes {
  Bytes low, high;
};

template <WordOrder kOrder>
class Packer {
 public:
  Packer()
      : order_(register_of(kOrder == WordOrder::kThreadFirst ? kByThread : kByColumn)),
        low_of_a_(register_of(hopper::kLowOfA)),
        low_of_b_(register_of(hopper::kLowOfB)),
        high_of_a_(register_of(hopper::kHighOfA)),
        high_of_b_(register_of(hopper::kHighOfB)),
        high_of_c_(register_of(hopper::kHighOfC)),
        high_of_d_(register_of(hopper::kHighOfD)) {}

  // Rows n and n + 8 of a patch; rows n + 1 and n + 9 lie `columns` bytes further.
  HWY_INLINE Packed run(const uint8_t* row, const uint8_t* row8, int64_t columns) const {
    const auto groups = [] {
      if constexpr (kOrder == WordOrder::kThreadFirst) {
        return kHalves;
      } else {
        return kQuads;
      }
    }();
    const Bytes x = hn::TableLookupBytes(load_rows(row, columns), order_);
    const Bytes y = hn::TableLookupBytes(load_rows(row + 16, columns), order_);
    const Bytes x8 = hn::TableLookupBytes(load_rows(row8, columns), order_);
    const Bytes y8 = hn::TableLookupBytes(load_rows(row8 + 16, columns), order_);
    const Bytes a = lower(groups, x, y);
    const Bytes c = upper(groups, x, y);
    const Bytes b = lower(groups, x8, y8);
    const Bytes d = upper(groups, x8, y8);
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

template <WordOrder kOrder>
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
    // Bytes 0 to 3 of every word, each in the words' order.
    const Bytes q0 = hn::TableLookupBytes(words.q0, turn_);
    const Bytes q1 = hn::TableLookupBytes(words.q1, turn_);
    const Bytes q2 = hn::TableLookupBytes(words.q2, turn_);
    const Bytes q3 = hn::TableLookupBytes(words.q3, turn_);
    const Bytes low01 = lower(kWords, q0, q1);
    const Bytes high01 = upper(kWords, q0, q1);
    const Bytes low23 = lower(kWords, q2, q3);
    const Bytes high23 = upper(kWords, q2, q3);
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

  // The bytes of a code by (j, t), put together from its low and its high nibbles.
  HWY_INLINE Bytes by_row(Bytes low, Bytes high) const {
    const Bytes both = hn::Or(low, raised(high));
    return kOrder == WordOrder::kThreadFirst ? hn::TableLookupBytes(both, turn_) : both;
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
    put(v.q0, to);
    put(v.q1, to + 16);
    put(v.q2, to + 32);
    put(v.q3, to + 48);
  } else {
    put(hn::ConcatLowerLower(kBytes, v.q1, v.q0), to);
    put(hn::ConcatLowerLower(kBytes, v.q3, v.q2), to + 32);
    put(hn::ConcatUpperUpper(kBytes, v.q1, v.q0), to + apart);
    put(hn::ConcatUpperUpper(kBytes, v.q3, v.q2), to + apart + 32);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard
