// Map G only changes how 32 rows are read, as 16 pairs or as two blocks of 16, so it is folded into
// the axes of the tile map behind it.
#include "lib/layouts/aiter_common.hpp"

#include "lib/core/dtype.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {

Permute aiter_weight_tiles(int64_t rows, int64_t row_bytes, RowPairs pairs) {
  if (pairs == RowPairs::kSplit) {
    return {Unit::kByte, {rows / 32, 16, 2, row_bytes / 16, 16}, {0, 2, 3, 1, 4}};
  }
  return {Unit::kByte, {rows / 16, 16, row_bytes / 16, 16}, {0, 2, 1, 3}};
}

Permute cdna4_scale_tiles(int64_t rows, int64_t columns, RowPairs pairs) {
  if (pairs == RowPairs::kSplit) {
    return {Unit::kByte, {rows / 32, 16, 2, columns / 8, 2, 4}, {0, 3, 5, 1, 4, 2}};
  }
  return {Unit::kByte, {rows / 32, 2, 16, columns / 8, 2, 4}, {0, 3, 5, 2, 4, 1}};
}

void require_cdna4_sizes(std::string_view layout_id, const LoadedSpec& loaded) {
  require_multiple(layout_id, "hidden size", loaded.dims.hidden_size, 256);
  require_multiple(layout_id, "intermediate size", loaded.dims.intermediate_size, 256);
}

Output aiter_weight_output(const LoadedSpec& loaded, Slot slot, RowPairs pairs) {
  const ExpertMatrix expert = loaded.expert(slot);
  Program program(expert.bytes());
  program.then(aiter_weight_tiles(expert.rows, expert.row_bytes, pairs));
  Output output = slot_output(loaded, slot, loaded.tensor(slot), std::move(program));
  output.storage.torch_dtype = "float4_e2m1fn_x2";
  output.storage.flags = {"is_shuffled"};
  return output;
}

Output aiter_scale_output(const LoadedSpec& loaded, Slot slot, RowPairs pairs, Shape shape) {
  const ExpertMatrix expert = loaded.expert(slot);
  Program program(expert.bytes());
  program.then(cdna4_scale_tiles(expert.rows, expert.row_bytes, pairs));
  return slot_output(loaded, slot, {DType::kU8, shape}, std::move(program));
}

}  // namespace mxfp4
