// Storage metadata follows triton_kernels: before 3.8 a layout object is built with the byte shape
// of the transposed tensor. A storage of rank 3 is mostly viewed with its last two axes exchanged.
#include "lib/layouts/triton_common.hpp"

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

bool is_weight(Slot slot) { return slot == Slot::kW13Weight || slot == Slot::kW2Weight; }

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (size_t axis = strides.size(); axis-- > 1;) {
    strides[axis - 1] = checked_mul(strides[axis], shape.dims()[axis]);
  }
  return strides;
}

Storage storage_of(Slot slot, const TritonMatrix& matrix, const TritonSwizzle& swizzle,
                   const Shape& physical) {
  Storage storage;
  storage.layout = swizzle.layout;
  storage.layout_name = swizzle.layout_name;
  storage.layout_kwargs = swizzle.kwargs;
  if (swizzle.from_shape) {
    storage.layout_init_shape = {matrix.experts, matrix.columns, matrix.rows};
  }
  storage.storage_shape.assign(physical.dims().begin(), physical.dims().end());
  storage.storage_strides = row_major_strides(physical);
  if (physical.rank() == 3 && swizzle.view == TritonView::kTransposed) {
    std::swap(storage.storage_shape[1], storage.storage_shape[2]);
    std::swap(storage.storage_strides[1], storage.storage_strides[2]);
  }
  const int64_t codes = is_weight(slot) ? kCodesPerByte : 1;
  storage.logical_shape = {matrix.experts, codes * matrix.columns, matrix.rows};
  if (swizzle.view == TritonView::kWrappedAsStored) storage.logical_shape = storage.storage_shape;
  storage.logical_dtype = is_weight(slot) ? "fp4_e2m1" : "uint8";
  if (swizzle.slack_bytes != nullptr) storage.slack_bytes = swizzle.slack_bytes(matrix);
  return storage;
}

// Weaves the two halves of each of `rows` rows of `count` units.
Permute interleave_halves(Unit unit, int64_t rows, int64_t count) {
  return {unit, {rows, 2, count / 2}, {0, 2, 1}};
}

Permute interleave_w13(const ExpertMatrix& expert, W13Weave weave) {
  if (weave == W13Weave::kLastAxis) {
    return interleave_halves(Unit::kByte, expert.rows, expert.row_bytes);
  }
  return {Unit::kByte, {2, expert.rows / 2, expert.row_bytes}, {1, 0, 2}};
}

// `first` (whose result is rows x columns bytes an expert), then the swizzle.
Output triton_output(const LoadedSpec& loaded, Slot slot, Program first, int64_t columns,
                     const TritonSwizzle& swizzle) {
  const TritonMatrix stored{loaded.dims.num_experts, loaded.expert(slot).rows, columns};
  const TritonMatrix matrix{stored.experts, stored.rows,
                            round_up(columns, swizzle.column_multiple)};
  append_padding(first, stored, matrix.rows, matrix.columns, swizzle.column_fill);
  const Shape physical = swizzle.append(first, matrix);
  Output output = slot_output(loaded, slot, {DType::kU8, physical}, std::move(first));
  output.storage = storage_of(slot, matrix, swizzle, physical);
  return output;
}

void require_sizes(std::string_view layout_id, const LayerDims& dims, const TritonParts& parts) {
  require_multiple(layout_id, "hidden size", dims.hidden_size, parts.multiple);
  require_multiple(layout_id, "intermediate size", dims.intermediate_size, parts.multiple);
  if (parts.weave == W13Weave::kLastAxis) {
    require_multiple(layout_id, "hidden size", dims.hidden_size, 2 * kBlock);
  }
}

}  // namespace

void append_padding(Program& program, const TritonMatrix& matrix, int64_t rows, int64_t columns,
                    std::byte fill) {
  if (rows == matrix.rows && columns == matrix.columns) return;
  program.then(PadMatrix{matrix.rows, matrix.columns, rows, columns, fill});
}

std::vector<Output> triton_outputs(std::string_view layout_id, const LayoutInput& input,
                                   const TritonParts& parts) {
  const LoadedSpec& loaded = input.loaded;
  if (parts.input_scales) require_input_scales(loaded);
  require_sizes(layout_id, loaded.dims, parts);
  const bool woven = parts.weave != W13Weave::kNone;
  std::vector<Output> outputs;
  for (Slot slot :
       {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    const ExpertMatrix expert = loaded.expert(slot);
    Program first(expert.bytes());
    if (woven && slot_is_w13(slot)) first.then(interleave_w13(expert, parts.weave));
    outputs.push_back(triton_output(loaded, slot, std::move(first), expert.row_bytes,
                                    is_weight(slot) ? parts.value : parts.scale));
  }
  for (Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (!loaded.has(slot)) continue;
    Output output = f32_bias_output(loaded, slot);
    if (woven && slot_is_w13(slot)) {
      output.program.then(interleave_halves(Unit::kWord32, 1, loaded.expert(slot).rows));
    }
    outputs.push_back(std::move(output));
  }
  if (parts.input_scales) append_input_scale_maxima(layout_id, loaded, outputs);
  return outputs;
}

}  // namespace mxfp4
