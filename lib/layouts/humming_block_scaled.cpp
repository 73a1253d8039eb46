// HUMMING on GPUs whose tensor cores take block scales themselves, with FP8 or MXFP4 activations
// and humming-kernels 0.1.12 or later. Both families alike, padded as humming.cpp pads; nothing is
// rounded. Scale words hold four bytes, the first lowest.
//
//   umma             capability 10.x and 11.x
//   mxmma-fp8        12.x, FP8 activations
//   mxmma-fp4        12.x, MXFP4 activations; mxmma-fp4-tiles before humming-kernels 0.1.17
#include "lib/layouts/humming_common.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

Output padded_weight_output(const LayoutInput& input, const HummingMatrix& m) {
  return slot_output(input.loaded, m.weight,
                     {DType::kI32, {input.loaded.dims.num_experts, m.padded_n, m.padded_k / 8}},
                     humming_padding(m.pad_codes()));
}

Output flat_weight_output(const LayoutInput& input, const HummingMatrix& m) {
  constexpr int64_t kWords = kBlock / 8;
  Output output = padded_weight_output(input, m);
  // Axes: n, k / 32, word.
  output.program.then(Permute{Unit::kWord32, {m.padded_n, m.padded_k / kBlock, kWords}, {1, 0, 2}});
  return output;
}

Output tiled_weight_output(const LayoutInput& input, const HummingMatrix& m) {
  return humming_weight_output(input, m, w8_activation_weight_tiles(m.padded_n, m.padded_k), 32);
}

Output fp4_tiled_weight_output(const LayoutInput& input, const HummingMatrix& m) {
  return humming_weight_output(input, m, w4_activation_weight_tiles(m.padded_n, m.padded_k), 64);
}

// Words [E, rows, columns] of four scale bytes.
Output scale_word_output(const LayoutInput& input, const HummingMatrix& m, int64_t rows,
                         int64_t columns, Permute order) {
  Program program = humming_padding(m.pad_scales());
  program.then(std::move(order));
  return slot_output(input.loaded, m.scale,
                     {DType::kI32, {input.loaded.dims.num_experts, rows, columns}},
                     std::move(program));
}

Output umma_scale_output(const LayoutInput& input, const HummingMatrix& m) {
  const int64_t words = m.padded_k / kBlock / 4;
  // Axes: n / 128, n % 128 / 32, n % 32, g / 4, g % 4.
  return scale_word_output(input, m, words, m.padded_n,
                           {Unit::kByte, {m.padded_n / 128, 4, 32, words, 4}, {3, 0, 2, 1, 4}});
}

Output mxmma_fp8_scale_output(const LayoutInput& input, const HummingMatrix& m) {
  const int64_t pairs = m.padded_k / kBlock / 2;
  // Axes: n / 16, n % 16 / 8, n % 8, g / 2, g % 2.
  return scale_word_output(input, m, pairs, m.padded_n / 2,
                           {Unit::kByte, {m.padded_n / 16, 2, 8, pairs, 2}, {3, 0, 2, 1, 4}});
}

Output mxmma_fp4_scale_output(const LayoutInput& input, const HummingMatrix& m) {
  const int64_t words = m.padded_k / kBlock / 4;
  return scale_word_output(input, m, words, m.padded_n,
                           {Unit::kWord32, {m.padded_n, words}, {1, 0}});
}

constexpr std::string_view kBlockScaledPreconditions =
    "H and I multiples of 32; biases in the params dtype";

}  // namespace

const Layout kHummingUmmaLayout = {
    .id = "humming/umma",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, N', K'/8]\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, K'/128, N']\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded",
    .formula =
        "as humming/mma\n"
        "weights: as loaded\n"
        "scale (n,g): byte g%4 of word [g/4][c]\n"
        "c = 128*(n/128) + 4*(n%32) + (n%128)/32",
    .preconditions = kBlockScaledPreconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, padded_weight_output, umma_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingMxmmaFp8Layout = {
    .id = "humming/mxmma-fp8",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/32, 4N']\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, K'/64, N'/2]\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded",
    .formula =
        "as humming/mma\n"
        "code (n,k): nibble P of word [k/32][c]\n"
        "c = 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8\n"
        "P = 2*(k%4) + (k/16)%2\n"
        "scale (n,g): byte 2*((n%16)/8) + g%2 of word [g/2][8*(n/16) + n%8]",
    .preconditions = kBlockScaledPreconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, tiled_weight_output, mxmma_fp8_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingMxmmaFp4Layout = {
    .id = "humming/mxmma-fp4",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, N', K'/8]\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, K'/128, N']\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded",
    .formula =
        "as humming/mma\n"
        "code (n,k): nibble k%8 of word 4*((k/32)*N' + n) + (k%32)/8\n"
        "scale (n,g): byte g%4 of word [g/4][n]",
    .preconditions = kBlockScaledPreconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, flat_weight_output, mxmma_fp4_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingMxmmaFp4TilesLayout = {
    .id = "humming/mxmma-fp4-tiles",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/64, 8N']\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, K'/128, N']\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded",
    .formula =
        "as humming/mma\n"
        "code (n,k): nibble k%8 of word [k/64][c]\n"
        "c = 128*(n/16) + 16*(n%8) + 4*((k%32)/8) + 2*((n%16)/8) + (k%64)/32\n"
        "scale (n,g): byte g%4 of word [g/4][n]",
    .preconditions = kBlockScaledPreconditions,
    .source =
        "vLLM 0.31.0 quantization/utils/humming/moe.py; humming-kernels 0.1.16 transform.py, "
        "config/config.py, include/humming/kernel/process.cuh",
    .kernel_library = "humming-kernels 0.1.12 and 0.1.16",
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, fp4_tiled_weight_output, mxmma_fp4_scale_output);
        },
    .reads = {.params_dtype = true},
};

}  // namespace mxfp4
