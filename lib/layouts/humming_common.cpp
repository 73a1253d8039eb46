#include "lib/layouts/humming_common.hpp"

#include <fmt/format.h>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kRowMultiple = 256;
constexpr int64_t kColumnMultiple = 128;

void check_biases(const LayoutInput& input) {
  const std::string& expected = input.parameters.params_dtype;
  if (!input.loaded.bias) return;
  const std::string_view found = *input.loaded.bias == DType::kF32 ? "float32" : "bfloat16";
  if (expected == found) return;
  throw Error::unsupported(
      fmt::format("bias dtype mismatched: expected torch.{}, found torch.{}", expected, found));
}

std::string second_scale_name(const HummingMatrix& m, HummingRounding rounding) {
  return fmt::format("{}_{}", slot_is_w13(m.weight) ? "w13" : "w2", rounding.second_scale);
}

Output rounded_weight_output(const LayoutInput& input, const HummingMatrix& m,
                             const HummingRoundedWeights& weights) {
  Output output =
      humming_weight_output(input, m, weights.tiles(m.padded_n, m.padded_k), weights.tile_columns);
  if (weights.words != nullptr) {
    output.program.then(Recode{weights.words, m.padded_n * m.padded_k / 8});
  }
  output.combination = requantize_weights(m.weight, m.scale, m.pad_scales(), weights.rounding);
  output.lost = "codes were rounded to a coarser scale";
  return output;
}

// The padding takes part in the new scales, so it is made by the combination.
Output rounded_scale_output(const LayoutInput& input, const HummingMatrix& m,
                            HummingRounding rounding) {
  Output output = humming_scale_output(input, m);
  output.combination =
      requantize_scales(m.scale, m.pad_scales(), rounding, second_scale_name(m, rounding));
  output.program = Program(output.combination->out_bytes);
  output.program.then(humming_scale_order(m));
  output.lost = fmt::format("scales were raised to within a span below the {} largest",
                            rounding.by_row ? "row's" : "expert's");
  return output;
}

Output second_scale_output(const LayoutInput& input, const HummingMatrix& m,
                           HummingRounding rounding) {
  const int64_t experts = input.loaded.dims.num_experts;
  Output output;
  output.name = second_scale_name(m, rounding);
  output.slot = m.scale;
  output.spec = rounding.by_row ? TensorSpec{rounding.row_type, {experts, m.padded_n}}
                                : TensorSpec{DType::kF32, {experts}};
  output.combination = second_scale(m.scale, m.pad_scales(), rounding);
  output.program = Program(output.combination->out_bytes);
  if (rounding.by_row) output.program.then(mma_bias_order(m.padded_n));
  output.restores_slot = false;
  return output;
}

// Biases [E, N'] in mma_bias_order.
Output humming_bias_output(const LayoutInput& input, const HummingMatrix& m) {
  const DType dtype = input.loaded.bias.value();
  const int64_t size = dtype_bytes(dtype);
  Program program = humming_padding({m.n, size, m.padded_n, size});
  program.then(mma_bias_order(m.padded_n));
  return slot_output(input.loaded, m.bias, {dtype, {input.loaded.dims.num_experts, m.padded_n}},
                     std::move(program));
}

// w13 and w2. Throws Error::unsupported for columns that are not whole blocks, or biases whose type
// is not the params dtype: the loader keeps the biases' own type, and the engine checks it.
std::array<HummingMatrix, 2> humming_matrices(const LayoutInput& input) {
  check_biases(input);
  const auto [w13, w2] = moe_matrices(input.loaded.dims);
  for (const MoeMatrix* m : {&w13, &w2}) {
    require_multiple("humming", fmt::format("columns of {}", slot_name(m->weight)), m->k, kBlock);
  }
  return {HummingMatrix(w13), HummingMatrix(w2)};
}

}  // namespace

HummingMatrix::HummingMatrix(const MoeMatrix& m)
    : MoeMatrix(m), padded_n(round_up(n, kRowMultiple)), padded_k(round_up(k, kColumnMultiple)) {}

PadMatrix HummingMatrix::pad_codes() const {
  return {n, k / kCodesPerByte, padded_n, padded_k / kCodesPerByte};
}

PadMatrix HummingMatrix::pad_scales() const {
  return {n, k / kBlock, padded_n, padded_k / kBlock, kHummingScalePadding};
}

Program humming_padding(const PadMatrix& pad) {
  Program program(pad.rows * pad.row_bytes);
  if (pad.rows != pad.out_rows || pad.row_bytes != pad.out_row_bytes) program.then(pad);
  return program;
}

Output humming_weight_output(const LayoutInput& input, const HummingMatrix& m, Permute tiles,
                             int64_t tile_columns) {
  Program program = humming_padding(m.pad_codes());
  program.then(std::move(tiles));
  return slot_output(
      input.loaded, m.weight,
      {DType::kI32,
       {input.loaded.dims.num_experts, m.padded_k / tile_columns, m.padded_n * tile_columns / 8}},
      std::move(program));
}

Permute humming_scale_order(const HummingMatrix& m) {
  // Axes: n / 64, n % 64 / 8, n % 8, g.
  return {Unit::kByte, {m.padded_n / 64, 8, 8, m.padded_k / kBlock}, {3, 0, 2, 1}};
}

Output humming_scale_output(const LayoutInput& input, const HummingMatrix& m) {
  Program program = humming_padding(m.pad_scales());
  program.then(humming_scale_order(m));
  Output output =
      slot_output(input.loaded, m.scale,
                  {DType::kU8, {input.loaded.dims.num_experts, m.padded_k / kBlock, m.padded_n}},
                  std::move(program));
  output.storage.torch_dtype = "float8_e8m0fnu";
  return output;
}

std::vector<Output> humming_outputs(const LayoutInput& input, HummingOutput weight,
                                    HummingOutput scale) {
  const std::array<HummingMatrix, 2> matrices = humming_matrices(input);
  std::vector<Output> result;
  result.reserve(3 * matrices.size());
  for (const HummingMatrix& m : matrices) result.push_back(weight(input, m));
  for (const HummingMatrix& m : matrices) result.push_back(scale(input, m));
  if (!input.loaded.bias) return result;
  for (const HummingMatrix& m : matrices) result.push_back(humming_bias_output(input, m));
  return result;
}

std::vector<Output> humming_rounded_outputs(const LayoutInput& input,
                                            const HummingRoundedWeights& weights) {
  const std::array<HummingMatrix, 2> matrices = humming_matrices(input);
  std::vector<Output> result;
  result.reserve(4 * matrices.size());
  for (const HummingMatrix& m : matrices) {
    result.push_back(rounded_weight_output(input, m, weights));
  }
  for (const HummingMatrix& m : matrices) {
    result.push_back(rounded_scale_output(input, m, weights.rounding));
  }
  if (input.loaded.bias) {
    for (const HummingMatrix& m : matrices) result.push_back(humming_bias_output(input, m));
  }
  for (const HummingMatrix& m : matrices) {
    result.push_back(second_scale_output(input, m, weights.rounding));
  }
  return result;
}

std::string check_humming_granule(const LayoutInput& input, Slot slot, ConstBytes granule,
                                  HummingRounding rounding) {
  for (const MoeMatrix& m : moe_matrices(input.loaded.dims)) {
    if (slot == m.scale) check_humming_scales(granule, HummingMatrix(m).pad_scales(), rounding);
  }
  return "";
}

}  // namespace mxfp4
