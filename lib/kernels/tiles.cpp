// Highway on registers of one or two 16-byte blocks; tile_plan.hpp says what the network does.
#include "lib/kernels/tiles.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

// The two blocks of a register lie `second` bytes apart, or side by side; a register of one block
// takes the first.
template <bool kSideBySide, class D>
HWY_INLINE hn::Vec<D> load(D d, const uint8_t* from, int64_t second) {
  if constexpr (hn::MaxLanes(D()) == 16 || kSideBySide) {
    return hn::LoadU(d, from);
  } else {
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
      : first(make(network.first_order)), last(make(network.last_order)) {}

  static Bytes make(const std::optional<TileNetwork::ByteOrder>& order) {
    if (!order) return hn::Zero(kBytes);
    return hn::LoadDup128(kBytes, order->data());
  }

  Bytes first, last;
};

// The plan's tables, where the compiler sees that no store changes them.
struct Tables {
  explicit Tables(const TilePlan& plan)
      : network(plan.network),
        load_offset(plan.load_offset.data()),
        group_load(plan.group_load.data()),
        group_store(plan.group_store.data()),
        groups(plan.group_load.size()),
        load_block(plan.load_block),
        store_block(plan.store_block),
        block_exchange(plan.block_exchange.value_or(-1)),
        line_bit(plan.line_bit.value_or(0)) {
    for (size_t block = 0; block < 2; ++block) {
      for (size_t i = 0; i < plan.store_offset.size(); ++i) {
        store_offset[block][i] = offset_of(plan, i, block);
      }
    }
  }

  // Of block `block` of register i. A register of one block is stored without the exchange.
  static int64_t offset_of(const TilePlan& plan, size_t i, size_t block) {
    if (kBlocks == 1 && plan.block_exchange) {
      const size_t bit = static_cast<size_t>(*plan.block_exchange);
      const size_t exchanged = (i & ~(size_t{1} << bit)) | block << bit;
      block = i >> bit & 1;
      i = exchanged;
    }
    return plan.store_offset[i] + (block == 0 ? 0 : plan.store_block);
  }

  TileNetwork network;
  const int64_t* HWY_RESTRICT load_offset;
  const int64_t* HWY_RESTRICT group_load;
  const int64_t* HWY_RESTRICT group_store;
  size_t groups;
  int64_t store_offset[2][size_t{1} << TilePlan::kMaxRegisterBits];
  int64_t load_block, store_block;
  int block_exchange, line_bit;
};

// Loops over registers have to vanish, or the registers live in memory.
template <size_t kCount, class F>
HWY_INLINE void unrolled(F f) {
  [&]<size_t... I>(std::index_sequence<I...>) HWY_ATTR __attribute__((always_inline)) {
    (f(std::integral_constant<size_t, I>()), ...);
  }
  (std::make_index_sequence<kCount>());
}

template <size_t kCount, class F>
HWY_INLINE void each(Bytes* v, F f) {
  unrolled<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) { v[i] = f(v[i]); });
}

// f(low, high) for the pairs of registers whose numbers differ in bit kBit.
template <size_t kBit, size_t kCount, class F>
HWY_INLINE void each_pair(Bytes* v, F f) {
  unrolled<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    constexpr size_t kMask = size_t{1} << kBit;
    if constexpr ((i & kMask) == 0 && (i | kMask) < kCount) f(v[i], v[i | kMask]);
  });
}

// Registers whose numbers differ in bit kBit change their second and first blocks.
template <size_t kBit, size_t kCount>
HWY_INLINE void exchange_blocks(Bytes* v) {
  if constexpr (kBlocks == 2) {
    each_pair<kBit, kCount>(
        v, [](Bytes & low, Bytes & high) HWY_ATTR __attribute__((always_inline)) {
          const Bytes first = hn::ConcatLowerLower(kBytes, high, low);
          high = hn::ConcatUpperUpper(kBytes, high, low);
          low = first;
        });
  }
}

template <size_t kBit, size_t kCount>
HWY_INLINE void exchange_bytes(Bytes* v) {
  each_pair<kBit, kCount>(
      v, [](Bytes & low, Bytes & high) HWY_ATTR __attribute__((always_inline)) {
        const Bytes first = hn::InterleaveLower(kBytes, low, high);
        high = hn::InterleaveUpper(kBytes, low, high);
        low = first;
      });
}

// The high nibbles of one register and the low nibbles of the other change places.
template <size_t kBit, size_t kCount>
HWY_INLINE void exchange_nibbles(Bytes* v) {
  each_pair<kBit, kCount>(
      v, [](Bytes & low, Bytes & high) HWY_ATTR __attribute__((always_inline)) {
        const auto up = hn::BitCast(kBytes, hn::ShiftLeft<4>(hn::BitCast(kHalves, high)));
        const Bytes differ = hn::And(hn::Xor(low, up), hn::Set(kBytes, uint8_t{0xF0}));
        low = hn::Xor(low, differ);
        high = hn::Xor(high, hn::BitCast(kBytes, hn::ShiftRight<4>(hn::BitCast(kHalves, differ))));
      });
}

// Registers through the network; the low bits of a register's number are exchanged.
template <int kExchanges, bool kSideBySide, size_t kCount>
HWY_INLINE void run_network(const Tables& plan, const Orders& orders, const uint8_t* in,
                            const int64_t* HWY_RESTRICT load_offset, Bytes* v) {
  const TileNetwork& network = plan.network;
  unrolled<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    v[i] = load<kSideBySide>(kBytes, in + load_offset[i], plan.load_block);
  });
  if (network.first_order) {
    each<kCount>(
        v, [&](Bytes x) HWY_ATTR
        __attribute__((always_inline)) { return hn::TableLookupBytes(x, orders.first); });
  }
  if (network.swap) {
    each<kCount>(
        v, [](Bytes x) HWY_ATTR __attribute__((always_inline)) { return swap_nibbles(x); });
  }
  if constexpr (kExchanges > 0) {
    if (network.lead_exchange) exchange_bytes<0, kCount>(v);
    if (network.nibble_exchange) exchange_nibbles<0, kCount>(v);
    if (network.first_exchange == 0) exchange_bytes<0, kCount>(v);
    unrolled<kExchanges - 1>([&](auto bit) HWY_ATTR __attribute__((always_inline)) {
      exchange_bytes<bit + 1, kCount>(v);
    });
  }
  if (network.last_order) {
    each<kCount>(
        v, [&](Bytes x) HWY_ATTR
        __attribute__((always_inline)) { return hn::TableLookupBytes(x, orders.last); });
  }
  if (plan.block_exchange == 0) {
    exchange_blocks<0, kCount>(v);
  } else if (plan.block_exchange == 1) {
    exchange_blocks<1, kCount>(v);
  } else if (plan.block_exchange == 2) {
    exchange_blocks<2, kCount>(v);
  } else if (plan.block_exchange == 3) {
    exchange_blocks<3, kCount>(v);
  }
}

// Whole lines past the caches, both halves of each at once: buffers for such stores are few.
template <size_t kBit, size_t kCount>
HWY_INLINE void stream_lines(const Tables& plan, const Bytes* v, uint8_t* out) {
  unrolled<kCount>([&](auto n) HWY_ATTR __attribute__((always_inline)) {
    constexpr size_t kMask = size_t{1} << kBit;
    // The highest register bit first: it may tell a line from the next.
    constexpr size_t kFirst = n / 2 + n % 2 * (kCount / 2);
    constexpr size_t kSecond = kFirst | kMask;
    if constexpr (kFirst != kSecond && kSecond < kCount) {
      uint8_t* line = out + plan.store_offset[0][kFirst];
      hn::Stream(v[kFirst], kBytes, line);
      hn::Stream(v[kSecond], kBytes, line + 32);
    }
  });
}

// One group of registers.
template <int kExchanges, bool kSideBySide, size_t kCount>
HWY_INLINE void run_group(const Tables& plan, const Orders& orders, bool streaming, size_t block,
                          const uint8_t* in, uint8_t* out) {
  const int64_t* HWY_RESTRICT store_offset = plan.store_offset[block];
  // What fits the register file at once.
  constexpr size_t kPart = std::min(kCount, std::max<size_t>(8, size_t{1} << kExchanges));
  Bytes v[kCount];
  unrolled<kCount / kPart>([&](auto part) HWY_ATTR __attribute__((always_inline)) {
    run_network<kExchanges, kSideBySide, kPart>(plan, orders, in, plan.load_offset + part * kPart,
                                                v + part * kPart);
  });
  if (streaming) {
    if (plan.line_bit == 0) {
      stream_lines<0, kCount>(plan, v, out);
    } else if (plan.line_bit == 1) {
      stream_lines<1, kCount>(plan, v, out);
    } else if (plan.line_bit == 2) {
      stream_lines<2, kCount>(plan, v, out);
    } else {
      stream_lines<3, kCount>(plan, v, out);
    }
  } else {
    unrolled<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      store(kBytes, v[i], out + store_offset[i], plan.store_block);
    });
  }
}

// Fetches what comes next into the second-level cache: the first is for the tiles at work.
class Fetcher {
 public:
  explicit Fetcher(const Upcoming& next)
      : base_(reinterpret_cast<const uint8_t*>(next.base)),
        run_(next.runs.data()),
        end_(base_ == nullptr ? run_ : run_ + next.runs.size()),
        run_bytes_(next.run_bytes) {}

  HWY_INLINE void fetch(size_t lines) {
    while (lines > 0) {
      if (left_ <= 0) {
        if (run_ == end_) return;
        const int64_t run = *run_++;
        if (run < 0) continue;
        at_ = base_ + run;
        left_ = run_bytes_;
      }
      for (; lines > 0 && left_ > 0; --lines, at_ += kLine, left_ -= kLine) {
        __builtin_prefetch(at_, 0, 2);
      }
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  const uint8_t* base_;
  const int64_t* run_;
  const int64_t* end_;
  int64_t run_bytes_;
  const uint8_t* at_ = nullptr;
  int64_t left_ = 0;
};

template <int kExchanges, bool kSideBySide, size_t kCount>
void run_all(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  constexpr size_t kLine = 64;
  const Orders orders(plan.network);
  const Tables tables(plan);
  Fetcher fetcher(hints.next);
  const bool streaming = hints.streaming && plan.line_bit && kBlocks == 2 &&
                         reinterpret_cast<uintptr_t>(out) % kLine == 0;
  walk(plan.tiles, [&](int64_t in_at, int64_t out_at) HWY_ATTR {
    for (size_t g = 0; g < tables.groups; ++g) {
      const uint8_t* from = in + in_at + tables.group_load[g];
      uint8_t* to = out + out_at + tables.group_store[g];
      run_group<kExchanges, kSideBySide, kCount>(tables, orders, streaming, 0, from, to);
      if constexpr (kBlocks == 1) {
        run_group<kExchanges, kSideBySide, kCount>(tables, orders, streaming, 1,
                                                   from + tables.load_block, to);
      }
      fetcher.fetch(kCount * 32 / kLine);
    }
  });
}

template <int kExchanges, size_t kCount>
void run_count(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  if (plan.load_block == 16 && kBlocks == 2) {
    run_all<kExchanges, true, kCount>(plan, hints, in, out);
  } else {
    run_all<kExchanges, false, kCount>(plan, hints, in, out);
  }
}

template <int kExchanges>
void run_exchanges(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  constexpr size_t kLeast = size_t{1} << kExchanges;
  constexpr size_t kUsual = std::max(kLeast, size_t{1} << TilePlan::kRegisterBits);
  constexpr size_t kMost = std::max(kUsual, size_t{1} << TilePlan::kMaxRegisterBits);
  if (plan.load_offset.size() == kUsual) {
    run_count<kExchanges, kUsual>(plan, hints, in, out);
  } else if (plan.load_offset.size() == kLeast) {
    run_count<kExchanges, kLeast>(plan, hints, in, out);
  } else if constexpr (kExchanges >= 3) {  // fewer leave room for a whole line in the usual ones
    run_count<kExchanges, kMost>(plan, hints, in, out);
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
