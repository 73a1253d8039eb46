// HUMMING, both families alike; rows keep their loaded order. The layout itself pads each matrix,
// at the end: rows N to N' = up(N, 256), columns K to K' = up(K, 128), where w13 has N = 2I, K = H
// and w2 N = H, K = I. New codes are 0, scale bytes 127 (1.0), biases 0. `/` is integer division.
//
//   weight   I32 [E, K'/16, 2N']       mma_weight_tiles (mma_tiles.hpp)
//                                      wgmma_weight_tiles on compute capability 9.x, as long as
//                                      humming-kernels is older than 0.1.17
//            I32 [E, K'/32, 4N']       w8_activation_weight_tiles with 8-bit activations
//   scale    U8 (e8m0) [E, K'/32, N']  (n, g) -> [g][64*(n/64) + 8*(n%8) + (n%64)/8]   (n = 10: 17)
//   bias     params dtype [E, N']      mma_bias_order; optional
//   w13_global_scale, w2_global_scale  F32 [E], with 8-bit activations, which requantise first:
//                                      humming_requantize.hpp
//
// Preconditions: H and I multiples of 32; biases in params dtype; 8-bit: scale bytes of one expert
// at most 127 + span apart.
// Source: vLLM a2c8fc6657 quantization/utils/humming_utils.py with humming-kernels 0.1.0a1
// (a6455de) schema/mxfp4.py, ops/weight.py, include/humming/kernel/process.cuh, process_mxfp4.cuh.
#include <fmt/format.h>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/all.hpp"
#include "lib/layouts/humming_requantize.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/mma_tiles.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kRowMultiple = 256;
constexpr int64_t kColumnMultiple = 128;

struct PaddedMatrix : MoeMatrix {
  explicit PaddedMatrix(const MoeMatrix& m)
      : MoeMatrix(m), padded_n(round_up(n, kRowMultiple)), padded_k(round_up(k, kColumnMultiple)) {}
  int64_t padded_n, padded_k;

  [[nodiscard]] PadMatrix pad_codes() const {
    return {n, k / kCodesPerByte, padded_n, padded_k / kCodesPerByte};
  }
  [[nodiscard]] PadMatrix pad_scales() const {
    return {n, k / kBlock, padded_n, padded_k / kBlock, kHummingScalePadding};
  }
};

Program padding_program(const PadMatrix& pad) {
  Program program(pad.rows * pad.row_bytes);
  if (pad.rows != pad.out_rows || pad.row_bytes != pad.out_row_bytes) program.then(pad);
  return program;
}

Permute scale_order(const PaddedMatrix& m) {
  // Axes: n / 64, n % 64 / 8, n % 8, g.
  return {Unit::kByte, {m.padded_n / 64, 8, 8, m.padded_k / kBlock}, {3, 0, 2, 1}};
}

Output humming_weight_output(const LayoutInput& input, const PaddedMatrix& m, Permute tiles,
                             int64_t tile_rows) {
  Program program = padding_program(m.pad_codes());
  program.then(std::move(tiles));
  return slot_output(
      input.loaded, m.weight,
      {DType::kI32,
       {input.loaded.dims.num_experts, m.padded_k / tile_rows, m.padded_n * tile_rows / 8}},
      std::move(program));
}

Output humming_scale_output(const LayoutInput& input, const PaddedMatrix& m) {
  Program program = padding_program(m.pad_scales());
  program.then(scale_order(m));
  Output output =
      slot_output(input.loaded, m.scale,
                  {DType::kU8, {input.loaded.dims.num_experts, m.padded_k / kBlock, m.padded_n}},
                  std::move(program));
  output.storage.torch_dtype = "float8_e8m0fnu";
  return output;
}

Output humming_bias_output(const LayoutInput& input, const PaddedMatrix& m) {
  const DType dtype = input.loaded.bias.value();
  const int64_t size = dtype_bytes(dtype);
  Program program = padding_program({m.n, size, m.padded_n, size});
  program.then(mma_bias_order(m.padded_n));
  return slot_output(input.loaded, m.bias, {dtype, {input.loaded.dims.num_experts, m.padded_n}},
                     std::move(program));
}

// The loader keeps biases in their own dtype and the schema check demands the params dtype.
void check_biases(const LayoutInput& input) {
  const std::string expected = params_dtype(input.target);
  if (!input.loaded.bias) return;
  const std::string_view found = *input.loaded.bias == DType::kF32 ? "float32" : "bfloat16";
  if (expected == found) return;
  throw Error::unsupported(
      fmt::format("bias dtype mismatched: expected torch.{}, found torch.{}", expected, found));
}

// All six outputs with the weight tiles of one kernel generation.
std::vector<Output> humming_outputs(const LayoutInput& input,
                                    Permute (*weight_tiles)(int64_t, int64_t), int64_t tile_rows) {
  check_biases(input);
  std::vector<PaddedMatrix> matrices;
  for (const MoeMatrix& m : moe_matrices(input.loaded.dims)) {
    require_multiple("humming", fmt::format("columns of {}", slot_name(m.weight)), m.k, kBlock);
    matrices.emplace_back(m);
  }
  std::vector<Output> result;
  result.reserve(3 * matrices.size());
  for (const PaddedMatrix& m : matrices) {
    result.push_back(
        humming_weight_output(input, m, weight_tiles(m.padded_n, m.padded_k), tile_rows));
  }
  for (const PaddedMatrix& m : matrices) result.push_back(humming_scale_output(input, m));
  if (!input.loaded.bias) return result;
  for (const PaddedMatrix& m : matrices) result.push_back(humming_bias_output(input, m));
  return result;
}

std::vector<Output> outputs_8bit(const LayoutInput& input) {
  constexpr int64_t kTileRows = 32;
  std::vector<Output> result = humming_outputs(input, w8_activation_weight_tiles, kTileRows);
  const HummingActivation activation = humming_activation(humming_input_dtype(input.target));
  for (const MoeMatrix& loaded : moe_matrices(input.loaded.dims)) {
    const PaddedMatrix m(loaded);
    const std::string global = slot_is_w13(m.weight) ? "w13_global_scale" : "w2_global_scale";
    for (Output& output : result) {
      if (output.slot == m.weight) {
        output.combination = requantize_weights(m.weight, m.scale, m.pad_scales(), activation);
        output.lost = "codes were rounded to a coarser scale";
      } else if (output.slot == m.scale) {
        // The padding takes part in the new scales, so it is made by the combination.
        output.combination = requantize_scales(m.scale, m.pad_scales(), activation, global);
        output.program = Program(output.combination->out_bytes);
        output.program.then(scale_order(m));
        output.lost = "scales were raised to within the span of the expert's global scale";
      }
    }
    Output scale;
    scale.name = global;
    scale.slot = m.scale;
    scale.spec = {DType::kF32, {input.loaded.dims.num_experts}};
    scale.combination = global_scale(m.scale, m.pad_scales(), activation);
    scale.program = Program(scale.combination->out_bytes);
    scale.restores_slot = false;
    result.push_back(std::move(scale));
  }
  return result;
}

// A larger distance between scale bytes wraps the reference's factor around to garbage.
std::string check_8bit_scales(const LayoutInput& input, Slot slot, ConstBytes granule) {
  const HummingActivation activation = humming_activation(humming_input_dtype(input.target));
  for (const MoeMatrix& loaded : moe_matrices(input.loaded.dims)) {
    if (slot != loaded.scale) continue;
    const HummingScaleRange range = humming_scale_range(granule, PaddedMatrix(loaded).pad_scales());
    const int most = kHummingLargestShift + activation.span;
    if (range.largest - range.smallest <= most) continue;
    throw Error::unsupported(
        fmt::format("scale bytes of an expert may lie at most {} apart with 8-bit activations, "
                    "found {} to {}",
                    most, range.smallest, range.largest));
  }
  return "";
}

constexpr std::string_view kHummingSource =
    "vLLM a2c8fc6657 quantization/utils/humming_utils.py; humming-kernels a6455de "
    "schema/mxfp4.py, include/humming/kernel/process.cuh";
constexpr std::string_view kHummingLibrary = "humming-kernels 0.1.0a1 (a6455de)";

}  // namespace

const Layout kHummingMmaLayout = {
    .id = "humming/mma",
    .backends = "HUMMING; on compute capability 9.x with humming-kernels 0.1.17 or later",
    .outputs_doc =
        "N' = N up to a multiple of 256, K' = K up to a multiple of 128\n"
        "weights I32 [E, K'/16, 2N']; scales U8 (e8m0) [E, K'/32, N']; biases [E, N']",
    .formula =
        "padded with codes 0, scale bytes 127, biases 0; w13 N = 2I, K = H; w2 N = H, K = I\n"
        "code (n, k) = nibble P of word [k/16][c], c = 128*(n/64) + 16*(n%8) + 4*((k%8)/2) + "
        "(n%64)/16, P = 4*(k%2) + 2*((n/8)%2) + (k/8)%2\n"
        "scale (n, g) -> [g][64*(n/64) + 8*(n%8) + (n%64)/8]\n"
        "bias n -> 32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2",
    .preconditions = "H and I multiples of 32; biases in the params dtype",
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, mma_weight_tiles, 16); },
    .check_data = nullptr,
};

const Layout kHummingWgmmaLayout = {
    .id = "humming/wgmma",
    .backends = "HUMMING, compute capability 9.x, with older humming-kernels",
    .outputs_doc = "as humming/mma",
    .formula = "as humming/mma with P = 4*(k%2) + 2*((k/8)%2) + (n/8)%2",
    .preconditions = "H and I multiples of 32; biases in the params dtype",
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, wgmma_weight_tiles, 16); },
    .check_data = nullptr,
};

const Layout kHummingW4A8Layout = {
    .id = "humming/w4a8",
    .backends = "HUMMING with humming_input_dtype=float8e4m3 or int8",
    .outputs_doc =
        "weights I32 [E, K'/32, 4N']; scales and biases as humming/mma\n"
        "w13_global_scale, w2_global_scale F32 [E]",
    .formula =
        "span = 12 (float8e4m3) or 3 (int8); max, min over the expert's padded scale bytes s\n"
        "base = max - min(max - min, span); d = max(s, base) - s\n"
        "scale: max(s, base) - base, then as humming/mma\n"
        "global scale: 2^(base - 127), halved for int8\n"
        "code: -0 becomes 0, then the magnitude * 2^-d is rounded to the nearest code, ties up\n"
        "code (n, k) = nibble P of word [k/32][c], c = 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + "
        "(n%32)/8, P = 2*(k%4) + (k/16)%2",
    .preconditions = "as humming/mma; an expert's scale bytes lie at most 127 + span apart",
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs = outputs_8bit,
    .check_data = check_8bit_scales,
    .refuses_scales = true,
};

}  // namespace mxfp4
