// Highway on registers of one or two 16-byte blocks; tile_plan.hpp says what the network does.
#include "lib/kernels/tiles.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "lib/kernels/permute.hpp"
#include "lib/kernels/tile_shapes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/tiles.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "lib/kernels/tile_registers_inl.hpp"
#include "lib/kernels/walk.hpp"

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

// Vectors that Highway emulates byte by byte gain nothing here. A compiler with sanitizers takes
// minutes for an unrolled group of such vectors.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void run(const TilePlan& plan, const uint8_t* in, const Upcoming&, bool, uint8_t* out) {
  permute_units(plan.units, plan.unit_bits, reinterpret_cast<const std::byte*>(in),
                reinterpret_cast<std::byte*>(out));
}

#else

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

// Copies of the plan's tables, so that the compiler sees that no store changes them.
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

  // Where block `block` of register i is stored. Registers of one block skip the exchange of
  // blocks: their offsets are exchanged instead.
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
  int64_t store_offset[2][size_t{1} << TilePlan::kMaxExchanges] = {};
  int64_t load_block, store_block;
};

#ifdef __clang__
// The reason is the one in tile_registers_inl.hpp.
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#endif

// Runs groups of the shape of one row of kTileRows; kI are the numbers of its registers. Loops over
// registers have to vanish, or the registers live in memory.
template <size_t kRow, size_t... kI>
struct KnownGroup {
  static constexpr TileShape kShape = kTileRows[kRow].shape;
  static constexpr size_t kMost = sizeof...(kI);
  static constexpr bool kStoresRun = kShape.stores_run;

  HWY_INLINE void load_all(const Tables& tables, const uint8_t* in, Bytes* v) const {
    const int64_t* HWY_RESTRICT at = tables.load_offset;
    const uint8_t* second = in + tables.load_block;
    ((v[kI] = load<kShape.loads_whole>(kBytes, in + at[kI], second + at[kI])), ...);
  }

  // Runs the network; the low bits of a register's number are exchanged.
  HWY_INLINE void permute(const Orders& orders, Bytes* v) const {
    if constexpr (kShape.first_order) reorder(orders.first, v);
    if constexpr (kShape.swap) ((v[kI] = swap_nibbles(v[kI])), ...);
    if constexpr (kShape.lead_exchange) each_pair<ExchangeBytes, 0>(v);
    if constexpr (kShape.nibble_exchange) each_pair<ExchangeNibbles, 0>(v);
    exchange_bit<0>(v);
    exchange_bit<1>(v);
    exchange_bit<2>(v);
    exchange_bit<3>(v);
    if constexpr (kShape.last_order) reorder(orders.last, v);
    if constexpr (kShape.block_exchange >= 0) each_pair<ExchangeBlocks, kShape.block_exchange>(v);
  }

  HWY_INLINE void store_all(const Bytes* v, const Tables& tables, size_t block,
                            uint8_t* out) const {
    const int64_t* HWY_RESTRICT at = tables.store_offset[block];
    uint8_t* second = out + tables.store_block;
    (store<kShape.stores_whole>(kBytes, v[kI], out + at[kI], second + at[kI]), ...);
  }

  // Stores the registers of a run past the caches; each is half a line.
  HWY_INLINE void stream_all(const Bytes* v, const Tables& tables, uint8_t* out) const {
    const int64_t* HWY_RESTRICT at = tables.store_offset[0];
    (hn::Stream(v[kI], kBytes, out + at[kI]), ...);
  }

 private:
  HWY_INLINE static void reorder(Bytes order, Bytes* v) {
    ((v[kI] = hn::TableLookupBytes(v[kI], order)), ...);
  }

  template <int kBit>
  HWY_INLINE static void exchange_bit(Bytes* v) {
    if constexpr (kShape.first_exchange <= kBit && kBit < kShape.exchanges) {
      each_pair<ExchangeBytes, kBit>(v);
    }
  }

  // The pairs of registers whose numbers differ in bit kBit.
  template <class Exchange, int kBit>
  HWY_INLINE static void each_pair(Bytes* v) {
    (pair_from<Exchange, kBit, kI>(v), ...);
  }

  template <class Exchange, int kBit, size_t kLow>
  HWY_INLINE static void pair_from(Bytes* v) {
    constexpr size_t kMask = size_t{1} << kBit;
    if constexpr ((kLow & kMask) == 0) Exchange::run(v[kLow], v[kLow | kMask]);
  }
};

#ifdef __clang__
#pragma clang attribute pop
#endif

// Runs groups of any shape, step by step with the registers in memory: for sizes that no row of
// kTileRows serves.
struct AnyGroup {
  static constexpr size_t kMost = size_t{1} << TilePlan::kMaxExchanges;
  static constexpr bool kStoresRun = false;
  TileShape shape;

  void load_all(const Tables& tables, const uint8_t* in, Bytes* v) const {
    for (size_t i = 0; i < shape.registers; ++i) {
      const uint8_t* first = in + tables.load_offset[i];
      v[i] = load<false>(kBytes, first, first + tables.load_block);
    }
  }

  void permute(const Orders& orders, Bytes* v) const {
    if (shape.first_order) reorder(orders.first, v);
    if (shape.swap) {
      for (size_t i = 0; i < shape.registers; ++i) v[i] = swap_nibbles(v[i]);
    }
    if (shape.lead_exchange) each<ExchangeBytes>(0, v);
    if (shape.nibble_exchange) each<ExchangeNibbles>(0, v);
    for (int bit = shape.first_exchange; bit < shape.exchanges; ++bit) each<ExchangeBytes>(bit, v);
    if (shape.last_order) reorder(orders.last, v);
    if (shape.block_exchange >= 0) each<ExchangeBlocks>(shape.block_exchange, v);
  }

  void store_all(const Bytes* v, const Tables& tables, size_t block, uint8_t* out) const {
    for (size_t i = 0; i < shape.registers; ++i) {
      uint8_t* first = out + tables.store_offset[block][i];
      store<false>(kBytes, v[i], first, first + tables.store_block);
    }
  }

 private:
  void reorder(Bytes order, Bytes* v) const {
    for (size_t i = 0; i < shape.registers; ++i) v[i] = hn::TableLookupBytes(v[i], order);
  }

  template <class Exchange>
  void each(int bit, Bytes* v) const {
    const size_t mask = size_t{1} << bit;
    for (size_t i = 0; i < shape.registers; ++i) {
      if ((i & mask) == 0) Exchange::run(v[i], v[i | mask]);
    }
  }
};

// Stores the pieces of the staging buffer at their places in the output, past the caches.
void stream_pieces(const TileStaging& plan, const uint8_t* HWY_RESTRICT staged,
                   uint8_t* HWY_RESTRICT out) {
  const int64_t bytes = plan.piece_bytes;
  for (const int64_t piece : plan.pieces) {
    uint8_t* HWY_RESTRICT to = out + piece;
    for (int64_t i = 0; i < bytes; i += kLine) {
      stream_line(staged + i, to + i, std::make_index_sequence<kLine / kLanes>());
    }
    staged += bytes;
  }
}

// The arguments of run_tiles().
struct Call {
  const TilePlan& plan;
  const uint8_t* in;
  const Upcoming& next;
  bool streaming;
  uint8_t* out;
};

// kRuns: a group goes past the caches from the registers.
template <bool kRuns, class Group>
HWY_INLINE void run_group(const Group& group, const Tables& tables, const Orders& orders,
                          size_t block, const uint8_t* in, uint8_t* out) {
  Bytes v[Group::kMost];
  group.load_all(tables, in, v);
  group.permute(orders, v);
  if constexpr (kRuns) {
    group.stream_all(v, tables, out);
  } else {
    group.store_all(v, tables, block, out);
  }
}

// The tables as run_tile() takes them: copies, which no store can reach, or each group would load
// them again. The offsets of sixteen registers do not fit into registers, and are not copied.
template <class Group>
using TileTables = std::conditional_t<(Group::kMost <= 8), Tables, const Tables&>;

template <bool kRuns, class Group>
HWY_INLINE void run_tile(const Group& group, TileTables<Group> tables, Orders orders,
                         const uint8_t* in, Fetcher& fetcher, uint8_t* out) {
  for (size_t g = 0; g < tables.groups; ++g) {
    const uint8_t* from = in + tables.group_load[g];
    uint8_t* to = out + tables.group_store[g];
    run_group<kRuns>(group, tables, orders, 0, from, to);
    if constexpr (kBlocks == 1) {
      run_group<kRuns>(group, tables, orders, 1, from + tables.load_block, to);
    }
    fetcher.fetch<std::max<int64_t>(1, Group::kMost * 32 / kLine)>();
  }
}

// Runs all tiles, through a staging buffer if `staging` is not null.
template <bool kRuns, class Group>
void walk_tiles(const Group& group, const Call& call, const TileStaging* staging) {
  const TilePlan& plan = call.plan;
  const Tables tables(plan, staging != nullptr ? staging->stores : plan.stores);
  const Orders orders(plan.network);
  Fetcher fetcher(call.next);
  HWY_ALIGN_MAX uint8_t buffer[TilePlan::kStagingBytes];
  walk(plan.tiles, [&](int64_t in_at, int64_t out_at) HWY_ATTR {
    uint8_t* tile = staging != nullptr ? buffer : call.out + out_at;
    run_tile<kRuns>(group, tables, orders, call.in + in_at, fetcher, tile);
    if (staging != nullptr) stream_pieces(*staging, buffer, call.out + out_at);
  });
}

template <class Group>
void run_groups(const Group& group, const Call& call) {
  // Where the plan has a staging buffer, the pieces of an aligned output are whole lines.
  const bool lines = call.plan.staging && reinterpret_cast<uintptr_t>(call.out) % kLine == 0;
  const bool streaming = call.streaming && lines;
  if constexpr (Group::kStoresRun && kBlocks == 2) {
    if (streaming) return walk_tiles<true>(group, call, nullptr);
  }
  walk_tiles<false>(group, call, streaming ? &*call.plan.staging : nullptr);
}

template <size_t kRow, size_t... kI>
void run_row(std::index_sequence<kI...>, const Call& call) {
  run_groups(KnownGroup<kRow, kI...>(), call);
}

template <size_t kRow>
void run_row(const Call& call) {
  run_row<kRow>(std::make_index_sequence<kTileRows[kRow].shape.registers>(), call);
}

template <size_t... kRows>
constexpr auto runners_of(std::index_sequence<kRows...>) {
  return std::array<void (*)(const Call&), sizeof...(kRows)>{run_row<kRows>...};
}

void run(const TilePlan& plan, const uint8_t* in, const Upcoming& next, bool streaming,
         uint8_t* out) {
  static constexpr auto kRunners = runners_of(std::make_index_sequence<std::size(kTileRows)>());
  const Call call = {plan, in, next, streaming, out};
  if (plan.row) return kRunners[*plan.row](call);
  run_groups(AnyGroup{shape_of(plan)}, call);
}

#endif  // HWY_TARGET

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mxfp4::kernels {
namespace {
HWY_EXPORT(run);
}  // namespace

void run_tiles(const TilePlan& plan, const std::byte* in, const Upcoming& next, bool streaming,
               std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(run)
  (plan, reinterpret_cast<const uint8_t*>(in), next, streaming, reinterpret_cast<uint8_t*>(out));
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
