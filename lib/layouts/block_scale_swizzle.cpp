#include "lib/layouts/block_scale_swizzle.hpp"

#include "lib/core/checked.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kTileRows = 128;
constexpr int64_t kTileColumns = 4;
constexpr int64_t kRowGroup = 32;  // rows 32 apart lie side by side

}  // namespace

Program& swizzle_128x4(Program& program, int64_t rows, int64_t columns) {
  const int64_t padded_rows = round_up(rows, kTileRows);
  const int64_t padded_columns = round_up(columns, kTileColumns);
  if (padded_rows != rows || padded_columns != columns) {
    program.then(PadMatrix{rows, columns, padded_rows, padded_columns, std::byte{0}});
  }
  // r = 128*t + 32*y + x, c = 4*k + z: axes t y x k z become t k x y z.
  return program.then(Permute{Unit::kByte,
                              {padded_rows / kTileRows, kTileRows / kRowGroup, kRowGroup,
                               padded_columns / kTileColumns, kTileColumns},
                              {0, 3, 2, 1, 4}});
}

}  // namespace mxfp4
