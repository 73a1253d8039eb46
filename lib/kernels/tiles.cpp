// Highway on registers of one or two 16-byte blocks; tile_plan.hpp says what the network does.
#include "lib/kernels/tiles.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/kernels/fetcher.hpp"
#include "lib/kernels/tile_shapes.hpp"

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
constexpr int64_t kLine = 64;

bool supported() { return true; }

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
  Tables(const TilePlan& plan, const TileStores& stores)
      : load_offset(plan.load_offset.data()),
        group_load(plan.group_load.data()),
        group_store(stores.group.data()),
        groups(plan.group_load.size()),
        load_block(plan.load_block),
        store_block(stores.block) {
    for (size_t block = 0; block < 2; ++block) {
      for (size_t i = 0; i < stores.offset.size(); ++i) {
        store_offset[block][i] = offset_of(plan.block_exchange, stores, i, block);
      }
    }
  }

  // Of block `block` of register i. A register of one block is stored without the exchange.
  static int64_t offset_of(std::optional<int> block_exchange, const TileStores& stores, size_t i,
                           size_t block) {
    if (kBlocks == 1 && block_exchange) {
      const size_t exchanged = (i & ~(size_t{1} << *block_exchange)) | block << *block_exchange;
      block = i >> *block_exchange & 1;
      i = exchanged;
    }
    return stores.offset[i] + (block == 0 ? 0 : stores.block);
  }

  const int64_t* HWY_RESTRICT load_offset;
  const int64_t* HWY_RESTRICT group_load;
  const int64_t* HWY_RESTRICT group_store;
  size_t groups;
  int64_t store_offset[2][size_t{1} << TilePlan::kMaxExchanges];
  int64_t load_block, store_block;
};

// A shape that the compiler knows, and one that each group looks at.
template <TileShape kShape>
struct KnownShape {
  static constexpr int kExchanges = kShape.exchanges;
  static constexpr size_t kRegisters = kShape.registers;
  static constexpr bool kLoadsWhole = kShape.loads_whole;
  static constexpr bool kStoresWhole = kShape.stores_whole;
  static constexpr bool kStoresRun = kShape.stores_run;
  [[nodiscard]] static constexpr TileShape shape() { return kShape; }
};
template <int kSomeExchanges, size_t kSomeRegisters>
struct AnyShape {
  static constexpr int kExchanges = kSomeExchanges;
  static constexpr size_t kRegisters = kSomeRegisters;
  static constexpr bool kLoadsWhole = false;
  static constexpr bool kStoresWhole = false;
  static constexpr bool kStoresRun = false;
  [[nodiscard]] TileShape shape() const { return looked_at; }
  TileShape looked_at;
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
template <class Shape>
HWY_INLINE void run_network(const Shape& known, const Tables& plan, const Orders& orders,
                            const uint8_t* in, Bytes* v) {
  constexpr int kExchanges = Shape::kExchanges;
  constexpr size_t kCount = Shape::kRegisters;
  const TileShape shape = known.shape();
  const int64_t* HWY_RESTRICT load_offset = plan.load_offset;
  const uint8_t* second = in + plan.load_block;
  unrolled<kCount>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const int64_t at = load_offset[i];
    v[i] = load<Shape::kLoadsWhole>(kBytes, in + at, second + at);
  });
  if (shape.first_order) {
    each<kCount>(
        v, [&](Bytes x) HWY_ATTR
        __attribute__((always_inline)) { return hn::TableLookupBytes(x, orders.first); });
  }
  if (shape.swap) {
    each<kCount>(
        v, [](Bytes x) HWY_ATTR __attribute__((always_inline)) { return swap_nibbles(x); });
  }
  if constexpr (kExchanges > 0) {
    if (shape.lead_exchange) exchange_bytes<0, kCount>(v);
    if (shape.nibble_exchange) exchange_nibbles<0, kCount>(v);
    if (shape.first_exchange == 0) exchange_bytes<0, kCount>(v);
    unrolled<kExchanges - 1>([&](auto bit) HWY_ATTR __attribute__((always_inline)) {
      exchange_bytes<bit + 1, kCount>(v);
    });
  }
  if (shape.last_order) {
    each<kCount>(
        v, [&](Bytes x) HWY_ATTR
        __attribute__((always_inline)) { return hn::TableLookupBytes(x, orders.last); });
  }
  if (shape.block_exchange == 0) {
    exchange_blocks<0, kCount>(v);
  } else if (shape.block_exchange == 1) {
    exchange_blocks<1, kCount>(v);
  } else if (shape.block_exchange == 2) {
    exchange_blocks<2, kCount>(v);
  } else if (shape.block_exchange == 3) {
    exchange_blocks<3, kCount>(v);
  }
}

// One group of registers. Past the caches: registers of a run, where each is half a line.
template <bool kStream, class Shape>
HWY_INLINE void run_group(const Shape& shape, const Tables& plan, const Orders& orders,
                          size_t block, const uint8_t* in, uint8_t* out) {
  const int64_t* HWY_RESTRICT store_offset = plan.store_offset[block];
  uint8_t* second = out + plan.store_block;
  Bytes v[Shape::kRegisters];
  run_network(shape, plan, orders, in, v);
  unrolled<Shape::kRegisters>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    const int64_t at = store_offset[i];
    if constexpr (kStream) {
      hn::Stream(v[i], kBytes, out + at);
    } else {
      store<Shape::kStoresWhole>(kBytes, v[i], out + at, second + at);
    }
  });
}

// A stage to its places, past the caches.
void stream_pieces(const TileStage& plan, const uint8_t* HWY_RESTRICT stage,
                   uint8_t* HWY_RESTRICT out) {
  const int64_t bytes = plan.piece_bytes;
  for (const int64_t piece : plan.pieces) {
    uint8_t* HWY_RESTRICT to = out + piece;
    for (int64_t i = 0; i < bytes; i += kLine) {
      unrolled<kLine / kLanes>([&](auto part) HWY_ATTR __attribute__((always_inline)) {
        const auto at = i + static_cast<int64_t>(part * kLanes);
        hn::Stream(hn::Load(kBytes, stage + at), kBytes, to + at);
      });
    }
    stage += bytes;
  }
}

struct Job {
  const TilePlan& plan;
  const TileHints& hints;
  const uint8_t* in;
  uint8_t* out;
};

// By way of the stage, where there is one.
template <bool kStream, class Shape>
void run_tiles_by(const Shape& shape, const Job& job, const TileStage* staging) {
  const TilePlan& plan = job.plan;
  const Tables tables(plan, staging != nullptr ? staging->stores : plan.stores);
  const Orders orders(plan.network);
  Fetcher fetcher(job.hints.next);
  HWY_ALIGN_MAX uint8_t stage[TilePlan::kStageBytes];
  walk(plan.tiles, [&](int64_t in_at, int64_t out_at) HWY_ATTR {
    uint8_t* tile = staging != nullptr ? stage : job.out + out_at;
    for (size_t g = 0; g < tables.groups; ++g) {
      const uint8_t* from = job.in + in_at + tables.group_load[g];
      uint8_t* to = tile + tables.group_store[g];
      run_group<kStream>(shape, tables, orders, 0, from, to);
      if constexpr (kBlocks == 1) {
        run_group<kStream>(shape, tables, orders, 1, from + tables.load_block, to);
      }
      fetcher.fetch<std::max<int64_t>(1, Shape::kRegisters * 32 / kLine)>();
    }
    if (staging != nullptr) stream_pieces(*staging, stage, job.out + out_at);
  });
}

template <class Shape>
void run_tiles_of(const Shape& shape, const Job& job) {
  const TilePlan& plan = job.plan;
  const bool streaming =
      job.hints.streaming && plan.stage && reinterpret_cast<uintptr_t>(job.out) % kLine == 0;
  if constexpr (Shape::kStoresRun && kBlocks == 2) {  // where a stage fits, a run is whole lines
    if (streaming) return run_tiles_by<true>(shape, job, nullptr);
  }
  run_tiles_by<false>(shape, job, streaming ? &*plan.stage : nullptr);
}

template <int kExchanges>
void run_exchanges(const TileShape& shape, const Job& job) {
  constexpr size_t kLeast = size_t{1} << kExchanges;
  constexpr size_t kUsual = std::max(kLeast, size_t{1} << TilePlan::kRegisterBits);
  if (shape.registers == kUsual) {
    run_tiles_of(AnyShape<kExchanges, kUsual>{shape}, job);
  } else {
    run_tiles_of(AnyShape<kExchanges, kLeast>{shape}, job);
  }
}

void run_any(const TileShape& shape, const Job& job) {
  switch (shape.exchanges) {
    case 0:
      return run_exchanges<0>(shape, job);
    case 1:
      return run_exchanges<1>(shape, job);
    case 2:
      return run_exchanges<2>(shape, job);
    case 3:
      return run_exchanges<3>(shape, job);
    default:
      return run_exchanges<TilePlan::kMaxExchanges>(shape, job);
  }
}

template <TileShape kShape>
bool run_known(const TileShape& shape, const Job& job) {
  if (shape != kShape) return false;
  run_tiles_of(KnownShape<kShape>(), job);
  return true;
}

void run(const TilePlan& plan, const TileHints& hints, const uint8_t* in, uint8_t* out) {
  const Job job = {plan, hints, in, out};
  const TileShape shape = shape_of(plan);
  const bool known = [&]<size_t... I>(std::index_sequence<I...>) {
    return (run_known<kKnownTileShapes[I]>(shape, job) || ...);
  }
  (std::make_index_sequence<std::size(kKnownTileShapes)>());
  if (!known) run_any(shape, job);
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
