// Two patches (hopper_words_inl.hpp) side by side give a line of row n and a line of row n + 8: row
// n takes the words of even j of both patches, row n + 8 the words of odd j. Highway on registers
// of one or two 16-byte blocks; plain words where a target has no vectors.
#include "lib/kernels/hopper_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/hopper_rows.cpp"
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

// Bytes from the start of row n to word (t, j) of the patch at column `column`.
int64_t word_offset(int64_t t, int64_t j, int64_t column, int64_t columns) {
  return j % 2 * 8 * columns + column + 16 * (j / 2) + 4 * t;
}

void pack_tile(int64_t columns, const uint8_t* in, bool, uint8_t* out) {
  for (int64_t row = 0; row < 8; ++row, in += columns, out += columns) {
    for (int64_t column = 0; column < columns; column += kPatchColumns) {
      for (int64_t j = 0; j < 4; ++j) {
        for (int64_t t = 0; t < 4; ++t) {
          const uint8_t* at = in + column + 8 * j + t;
          store_word(packed_word(at, at + 8 * columns), out + word_offset(t, j, column, columns));
        }
      }
    }
  }
}

void unpack_tile(int64_t columns, const uint8_t* in, bool, uint8_t* out) {
  for (int64_t row = 0; row < 8; ++row, in += columns, out += columns) {
    for (int64_t column = 0; column < columns; column += kPatchColumns) {
      for (int64_t j = 0; j < 4; ++j) {
        for (int64_t t = 0; t < 4; ++t) {
          uint8_t* at = out + column + 8 * j + t;
          unpack_word(load_word(in + word_offset(t, j, column, columns)), at, at + 8 * columns);
        }
      }
    }
  }
}

#else

constexpr WordOrder kOrder = WordOrder::kColumnFirst;

// 16 rows of `columns` bytes.
void pack_tile(int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const Packer<kOrder> packer;
  const uint8_t* next = in + kTileRows * columns;
  for (int64_t row = 0; row < 8; row += kBlocks) {
    for (int64_t column = 0; column < columns; column += kLine) {
      for (int64_t i = 0; i < 2 * kBlocks; ++i, next += kLine) __builtin_prefetch(next, 0, 2);
      const uint8_t* from = in + row * columns + column;
      const uint8_t* from8 = from + 8 * columns;
      const Packed left = packer.run(from, from8, columns);
      const Packed right = packer.run(from + kPatchColumns, from8 + kPatchColumns, columns);
      uint8_t* to = out + row * columns + column;
      store_lines({left.q0, left.q2, right.q0, right.q2}, streaming, to, columns);
      store_lines({left.q1, left.q3, right.q1, right.q3}, streaming, to + 8 * columns, columns);
    }
  }
}

HWY_INLINE Packed load_packed(const uint8_t* row, const uint8_t* row8, int64_t columns) {
  return {load_rows(row, columns), load_rows(row8, columns), load_rows(row + 16, columns),
          load_rows(row8 + 16, columns)};
}

void unpack_tile(int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const Unpacker<kOrder> unpacker;
  const uint8_t* next = in + kTileRows * columns;
  for (int64_t row = 0; row < 8; row += kBlocks) {
    for (int64_t column = 0; column < columns; column += kLine) {
      for (int64_t i = 0; i < 2 * kBlocks; ++i, next += kLine) __builtin_prefetch(next, 0, 2);
      const uint8_t* from = in + row * columns + column;
      const uint8_t* from8 = from + 8 * columns;
      const Rows left = unpacker.run(load_packed(from, from8, columns));
      const Rows right =
          unpacker.run(load_packed(from + kPatchColumns, from8 + kPatchColumns, columns));
      uint8_t* to = out + row * columns + column;
      store_lines({left.row, left.row_second, right.row, right.row_second}, streaming, to, columns);
      store_lines({left.row8, left.row8_second, right.row8, right.row8_second}, streaming,
                  to + 8 * columns, columns);
    }
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

void pack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    pack_tile(columns, in + row * columns, lines, out + row * columns);
  }
}

void unpack(int64_t rows, int64_t columns, const uint8_t* in, bool streaming, uint8_t* out) {
  const bool lines = streaming && is_line(out);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    unpack_tile(columns, in + row * columns, lines, out + row * columns);
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

void hopper_rows_pack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                      std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), streaming, reinterpret_cast<uint8_t*>(out));
}

void hopper_rows_unpack(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                        std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(unpack)
  (rows, columns, reinterpret_cast<const uint8_t*>(in), streaming, reinterpret_cast<uint8_t*>(out));
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
