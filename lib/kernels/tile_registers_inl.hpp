// Register types for tiles.cpp, the only file that includes this: one or two 16-byte blocks, loads
// and stores, and the steps of a TileNetwork (tile_plan.hpp) on two registers.
//
// Highway's own guard: the text is compiled once for each instruction set.
#if defined(LIB_KERNELS_TILE_REGISTERS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LIB_KERNELS_TILE_REGISTERS_INL_HPP_
#undef LIB_KERNELS_TILE_REGISTERS_INL_HPP_
#else
#define LIB_KERNELS_TILE_REGISTERS_INL_HPP_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<uint8_t, 32> kBytes;
const hn::CappedTag<uint16_t, 16> kHalves;
using Bytes = hn::Vec<decltype(kBytes)>;
constexpr size_t kLanes = hn::MaxLanes(kBytes);
constexpr size_t kBlocks = kLanes / 16;
constexpr int64_t kLine = 64;

// Two blocks from two places, or from one where they lie side by side; a register of one block
// takes the first.
template <bool kSideBySide, class D>
HWY_INLINE hn::Vec<D> load(D d, const uint8_t* first, const uint8_t* second) {
  if constexpr (hn::MaxLanes(D()) == 16 || kSideBySide) {
    return hn::LoadU(d, first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, hn::LoadU(half, second), hn::LoadU(half, first));
  }
}

template <bool kSideBySide, class D>
HWY_INLINE void store(D d, hn::Vec<D> bytes, uint8_t* first, uint8_t* second) {
  if constexpr (hn::MaxLanes(D()) == 16 || kSideBySide) {
    hn::StoreU(bytes, d, first);
  } else {
    const hn::Half<D> half;
    hn::StoreU(hn::LowerHalf(half, bytes), half, first);
    hn::StoreU(hn::UpperHalf(half, bytes), half, second);
  }
}

Bytes swap_nibbles(Bytes bytes) {
  const auto x = hn::BitCast(kHalves, bytes);
  const auto middle = hn::Set(kHalves, uint16_t{0x00F0});
  const auto outer = hn::And(x, hn::Set(kHalves, uint16_t{0xF00F}));
  const auto up = hn::ShiftLeft<4>(hn::And(x, middle));
  const auto down = hn::And(hn::ShiftRight<4>(x), middle);
  return hn::BitCast(kBytes, hn::Or(outer, hn::Or(up, down)));
}

// Stores a line past the caches. Unrolled by hand: the compiler's loop takes twice as many
// instructions.
template <size_t... kI>
HWY_INLINE void stream_line(const uint8_t* HWY_RESTRICT in, uint8_t* HWY_RESTRICT out,
                            std::index_sequence<kI...>) {
  (hn::Stream(hn::Load(kBytes, in + kI * kLanes), kBytes, out + kI * kLanes), ...);
}

#ifdef __clang__
// Clang's undefined behaviour sanitizer checks every mention of a register for being null or
// misaligned. There are a hundred in a group, and optimising these checks takes minutes. The
// address sanitizer still checks what groups load and store.
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#endif

// Interleaves the bytes of two registers: the first half goes to one, the second to the other.
struct ExchangeBytes {
  HWY_INLINE static void run(Bytes& low, Bytes& high) {
    const Bytes first = hn::InterleaveLower(kBytes, low, high);
    high = hn::InterleaveUpper(kBytes, low, high);
    low = first;
  }
};

// The high nibbles of one register and the low nibbles of the other change places.
struct ExchangeNibbles {
  HWY_INLINE static void run(Bytes& low, Bytes& high) {
    const auto up = hn::BitCast(kBytes, hn::ShiftLeft<4>(hn::BitCast(kHalves, high)));
    const Bytes differ = hn::And(hn::Xor(low, up), hn::Set(kBytes, uint8_t{0xF0}));
    low = hn::Xor(low, differ);
    high = hn::Xor(high, hn::BitCast(kBytes, hn::ShiftRight<4>(hn::BitCast(kHalves, differ))));
  }
};

// The second block of one register and the first of the other change places.
struct ExchangeBlocks {
  HWY_INLINE static void run(Bytes& low, Bytes& high) {
    if constexpr (kBlocks == 2) {
      const Bytes first = hn::ConcatLowerLower(kBytes, high, low);
      high = hn::ConcatUpperUpper(kBytes, high, low);
      low = first;
    }
  }
};

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif  // HWY_TARGET

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard
