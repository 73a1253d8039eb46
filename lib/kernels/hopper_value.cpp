// Rows n and n + 8 give the first 64 of the 128 packed bytes of 32 columns, rows n + 1 and n + 9
// the others. Highway on registers of one or two 16-byte blocks; plain words where a target has
// no vectors.
#include "lib/kernels/hopper_value.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/hopper_value.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/highway.h>

#include "lib/kernels/hopper_words_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kTileRows = 16;

#if HWY_TARGET == HWY_SCALAR

void pack_row_pairs(int64_t columns, const uint8_t* in, const uint8_t*, bool, uint8_t* out) {
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; ++s) {
      const uint8_t* row = in + s * columns + column;
      for (int64_t t = 0; t < 4; ++t) {
        for (int64_t j = 0; j < 4; ++j, out += 4) {
          const uint8_t* at = row + 8 * j + t;
          store_word(packed_word(at, at + 8 * columns), out);
        }
      }
    }
  }
}

void unpack_row_pairs(int64_t columns, const uint8_t* in, bool, uint8_t* out) {
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; ++s) {
      uint8_t* row = out + s * columns + column;
      for (int64_t t = 0; t < 4; ++t) {
        for (int64_t j = 0; j < 4; ++j, in += 4) {
          uint8_t* at = row + 8 * j + t;
          unpack_word(load_word(in), at, at + 8 * columns);
        }
      }
    }
  }
}

#else

constexpr WordOrder kOrder = WordOrder::kThreadFirst;

// The next tile's bytes, as many as one step packs, into the second-level cache: its rows are short
// and four are read in turn, which the core's own prefetching follows late.
HWY_INLINE void fetch_step(const uint8_t* at) {
  for (int64_t i = 0; i < kBlocks; ++i) __builtin_prefetch(at + i * kPackedBytes, 0, 2);
}

HWY_INLINE Packed load_packed(const uint8_t* in) {
  return {load_rows(in, kPackedBytes), load_rows(in + 16, kPackedBytes),
          load_rows(in + 32, kPackedBytes), load_rows(in + 48, kPackedBytes)};
}

// Rows n, n + 1, n + 8 and n + 9 of `columns` bytes from `in` on to 4 * columns bytes.
void pack_row_pairs(int64_t columns, const uint8_t* in, const uint8_t* next, bool streaming,
                    uint8_t* out) {
  const Packer<kOrder> packer;
  const uint8_t* in8 = in + 8 * columns;
  for (int64_t column = 0; column < columns; column += kPatchColumns) {
    for (int64_t s = 0; s < 2; s += kBlocks, out += kBlocks * kPackedBytes) {
      fetch_step(next);
      next += kBlocks * kPackedBytes;
      const int64_t at = s * columns + column;
      store_lines(packer.run(in + at, in8 + at, columns), streaming, out, kPackedBytes);
    }
  }
}

// The inverse. Two patches side by side have whole lines of each row.
void unpack_row_pairs(int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const Unpacker<kOrder> unpacker;
  const int64_t ahead = kTileRows * columns;
  uint8_t* out8 = out + 8 * columns;
  int64_t column = 0;
  for (; column + kPatchColumns < columns; column += 2 * kPatchColumns) {
    for (int64_t s = 0; s < 2; s += kBlocks) {
      const uint8_t* from = in + 4 * column + s * kPackedBytes;
      fetch_step(from + ahead);
      fetch_step(from + ahead + 2 * kPackedBytes);
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

void pack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    for (int64_t t = 0; t < 4; ++t, out += 4 * columns) {
      const uint8_t* tile = in + row * columns;
      pack_row_pairs(columns, tile + 2 * t * columns, tile + (kTileRows + 4 * t) * columns, lines,
                     out);
    }
  }
}

void unpack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out) && columns % kLine == 0;
  for (int64_t row = 0; row < rows; row += kTileRows) {
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
