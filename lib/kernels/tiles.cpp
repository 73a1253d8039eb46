// Highway on registers of one or two 16-byte blocks; tile_plan.hpp says what the network does.
#include "lib/kernels/tiles.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/tiles.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "lib/kernels/walk.hpp"

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

bool supported() { return false; }
void run(const TilePlan&, const TileHints&, const uint8_t*, uint8_t*) {}

#else

namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<uint8_t, 32> kBytes;
const hn::CappedTag<uint16_t, 16> kHalves;
using Bytes = hn::Vec<decltype(kBytes)>;
constexpr size_t kLanes = hn::MaxLanes(kBytes);
constexpr size_t kBlocks = kLanes / 16;

bool supported() { return true; }

// The two blocks of a register lie `second` bytes apart; a register of one block takes the first.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from, int64_t second) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, from);
  } else {
    if (second == 16) return hn::LoadU(d, from);
    const hn::Half<D> half;
    return hn::Combine(d, hn::LoadU(half, from + second), hn::LoadU(half, from));
  }
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> bytes, uint8_t* to, int64_t second) {
  if constexpr (hn::MaxLanes(D()) > 16) {
    if (second != 16) {
      const hn::Half<D> half;
      hn::StoreU(hn::LowerHalf(half, bytes), half, to);
      hn::StoreU(hn::UpperHalf(half, bytes), half, to + second);
      return;
    }
  }
  hn::StoreU(bytes, d, to);
}

Bytes swap_nibbles(Bytes bytes) {
  const auto x = hn::BitCast(kHalves, bytes);
  const auto middle = hn::Set(kHalves, uint16_t{0x00F0});
  const auto outer = hn::And(x, hn::Set(kHalves, uint16_t{0xF00F}));
  const auto up = hn::ShiftLeft<4>(hn::And(x, middle));
  const auto down = hn::And(hn::ShiftRight<4>(x), middle);
  return hn::BitCast(kBytes, hn::Or(outer, hn::Or(up, down)));
}

// The network's constants in registers.
struct Orders {
  explicit Orders(const TileNetwork& network)
      : first(make(network.first_order)),
        second(make(network.second_order)),
        last(make(network.last_order)) {}

  static Bytes make(const std::optional<TileNetwork::ByteOrder>& order) {
    if (!order) return hn::Zero(kBytes);
    return hn::LoadDup128(kBytes, order->data());
  }

  Bytes first, second, last;
};

template <size_t Count, class F>
HWY_INLINE void each(Bytes (&v)[Count], F f) {
  for (size_t i = 0; i < Count; ++i) v[i] = f(v[i]);
}

// One group of registers through the network; the low bits of a register's number are exchanged.
template <int kExchanges, size_t kCount>
HWY_INLINE void run_group(const TilePlan& plan, const Orders& orders, const uint8_t* in,
                          uint8_t* staged) {
  const TileNetwork& network = plan.network;
  Bytes v[kCount];
  for (size_t i = 0; i < kCount; ++i)
    v[i] = load(kBytes, in + plan.load_offset[i], plan.load_block);
  if (network.first_order) {
    each(v, [&](Bytes x) HWY_ATTR { return hn::TableLookupBytes(x, orders.first); });
  }
  if (network.first_swap) each(v, [](Bytes x) HWY_ATTR { return swap_nibbles(x); });
  if (network.second_order) {
    each(v, [&](Bytes x) HWY_ATTR { return hn::TableLookupBytes(x, orders.second); });
  }
  for (size_t bit = 1; bit < size_t{1} << kExchanges; bit *= 2) {
    for (size_t i = 0; i < kCount; ++i) {
      if ((i & bit) != 0) continue;
      const Bytes low = hn::InterleaveLower(kBytes, v[i], v[i | bit]);
      v[i | bit] = hn::InterleaveUpper(kBytes, v[i], v[i | bit]);
      v[i] = low;
    }
  }
  if (network.last_swap) each(v, [](Bytes x) HWY_ATTR { return swap_nibbles(x); });
  if (network.last_order) {
    each(v, [&](Bytes x) HWY_ATTR { return hn::TableLookupBytes(x, orders.last); });
  }
  for (size_t i = 0; i < kCount; ++i) {
    store(kBytes, v[i], staged + plan.store_offset[i], plan.store_block);
  }
}

// Groups are of two blocks; narrower registers take them one after the other.
template <int kExchanges, size_t kCount>
void run_tile(const TilePlan& plan, const Orders& orders, const uint8_t* in, uint8_t* staged) {
  const size_t groups = plan.group_load.size();
  for (size_t g = 0; g < groups; ++g) {
    const uint8_t* from = in + plan.group_load[g];
    uint8_t* to = staged + plan.group_store[g];
    run_group<kExchanges, kCount>(plan, orders, from, to);
    if constexpr (kBlocks == 1) {
      run_group<kExchanges, kCount>(plan, orders, from + plan.load_block, to + plan.store_block);
    }
  }
}

void copy_run(const uint8_t* from, size_t bytes, bool past_caches, uint8_t* to) {
  if (bytes % kLanes != 0) {
    std::memcpy(to, from, bytes);
  } else if (past_caches) {
    for (size_t i = 0; i < bytes; i += kLanes) {
      hn::Stream(hn::Load(kBytes, from + i), kBytes, to + i);
    }
  } else {
    for (size_t i = 0; i < bytes; i += kLanes) {
      hn::StoreU(hn::Load(kBytes, from + i), kBytes, to + i);
    }
  }
}

template <int kExchanges, size_t kCount>
void run_all(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  constexpr size_t kLine = 64;
  alignas(kLine) uint8_t staged[TilePlan::kMaxTileBytes];
  const Orders orders(plan.network);
  const auto run = static_cast<size_t>(plan.run_bytes);
  walk(plan.tiles, [&](int64_t in_at, int64_t out_at) HWY_ATTR {
    if (hints.ahead != 0) {
      // To the second-level cache: the first is for this tile.
      const uint8_t* next = in + in_at + hints.ahead;
      for (int64_t line : plan.line_offset) __builtin_prefetch(next + line, 0, 2);
    }
    run_tile<kExchanges, kCount>(plan, orders, in + in_at, staged);
    const uint8_t* from = staged;
    for (int64_t offset : plan.run_offset) {
      uint8_t* to = out + out_at + offset;
      const bool whole_lines = (reinterpret_cast<uintptr_t>(to) | run) % kLine == 0;
      copy_run(from, run, hints.streaming && whole_lines, to);
      from += run;
    }
  });
}

template <int kExchanges>
void run_exchanges(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  constexpr size_t kLeast = size_t{1} << kExchanges;
  constexpr size_t kUsual = std::max(kLeast, size_t{1} << TilePlan::kRegisterBits);
  if (plan.load_offset.size() == kUsual) {
    run_all<kExchanges, kUsual>(plan, hints, in, out);
  } else {
    run_all<kExchanges, kLeast>(plan, hints, in, out);
  }
}

void run(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  switch (plan.network.exchanges) {
    case 0:
      return run_exchanges<0>(plan, hints, in, out);
    case 1:
      return run_exchanges<1>(plan, hints, in, out);
    case 2:
      return run_exchanges<2>(plan, hints, in, out);
    case 3:
      return run_exchanges<3>(plan, hints, in, out);
    default:
      return run_exchanges<TilePlan::kMaxExchanges>(plan, hints, in, out);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mxfp4::kernels {
namespace {
HWY_EXPORT(supported);
HWY_EXPORT(run);
}  // namespace

bool tiles_supported() noexcept { return HWY_DYNAMIC_DISPATCH(supported)(); }

void run_tiles(const TilePlan& plan, const TileHints& hints, const std::byte* in,
               std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(run)
  (plan, hints, reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out));
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
