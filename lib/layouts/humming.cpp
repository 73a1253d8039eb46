// HUMMING, both families alike; rows keep their loaded order. The layout itself pads each matrix at
// the end. The words of a tile are in mma_tiles.hpp's orders:
//   mma_weight_tiles         activations of 16 bits
//   wgmma_weight_tiles       on capability 9.x, as long as humming-kernels is older than 0.1.17
//   mma_native_weight_tiles  from capability 10.0 on, where humming-kernels 0.1.16 or later finds a
//                            CUDA compiler that converts e2m1 itself: 13.2, for FP16 12.7
//   w8_activation_weight_tiles  activations of 8 bits, which requantise first: humming_requantize.hpp
// With FP16 and humming-kernels 0.1.17 or later scales are as kE8m0ToE5m0 (recodings.hpp) makes
// them. Where tensor cores take block scales themselves nothing is rounded (0.1.12 and later): umma on
// capability 10.x and 11.x; mxmma-fp8 and mxmma-fp4 on 12.x, by the type of activations, the latter
// mxmma-fp4-tiles before 0.1.17. Their scale words hold four bytes, the first lowest.
//
// From 0.1.4 on 8-bit activations round by expert for FP8, by row for INT8; from 0.1.12 on new columns
// of scales repeat the row's largest byte. With FP8 the kernel takes a word's magnitudes in another
// order than its signs: kMagnitudesApart (recodings.hpp).
//
// Example: the scale (n, g) = (10, g) goes to [g][17].
#include <fmt/format.h>

#include "lib/core/dtype.hpp"
#include "lib/layouts/humming_common.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {
namespace {

// --- weights and scales

Output mma_weight(const LayoutInput& input, const HummingMatrix& m) {
  return humming_weight_output(input, m, mma_weight_tiles(m.padded_n, m.padded_k), 16);
}

Output wgmma_weight(const LayoutInput& input, const HummingMatrix& m) {
  return humming_weight_output(input, m, wgmma_weight_tiles(m.padded_n, m.padded_k), 16);
}

Output native_weight(const LayoutInput& input, const HummingMatrix& m) {
  return humming_weight_output(input, m, mma_native_weight_tiles(m.padded_n, m.padded_k), 16);
}

Output fp16_scale(const LayoutInput& input, const HummingMatrix& m) {
  Output output = humming_scale_output(input, m);
  output.program.then(Recode{&kE8m0ToE5m0, m.padded_k / kBlock * m.padded_n});
  output.lost = "scale bytes below 112 became 112, above 142 became 142 (float16)";
  return output;
}

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

// --- what is said of them

constexpr const char* kNewerSource =
    "vLLM 0.33.0 quantization/utils/humming/moe.py; humming-kernels 0.1.19 transform.py, "
    "config/config.py, include/humming/kernel/process.cuh, process_mxfp4.cuh";
constexpr const char* kNewerLibrary = "humming-kernels 0.1.17 and 0.1.19";
constexpr const char* kOldestSource =
    "vLLM a2c8fc6657 quantization/utils/humming_utils.py; humming-kernels a6455de "
    "schema/mxfp4.py, ops/weight.py, include/humming/kernel/process.cuh, process_mxfp4.cuh";
constexpr const char* kOldestLibrary = "humming-kernels 0.1.0a1 (a6455de)";
constexpr const char* kAnyBias = "BF16 or F16";

struct HummingWords {
  const char *id, *weights, *scales;  // the shapes of both
  const char* formula;
  const char* source = kNewerSource;
  const char* library = kNewerLibrary;
  const char* preconditions = "H and I multiples of 32; biases in the params dtype";
  const char* biases = kAnyBias;
};

Layout humming_layout(const HummingWords& words, HummingOutput weight, HummingOutput scale) {
  return {.id = words.id,
          .outputs_doc = fmt::format("N' = up(N,256), K' = up(K,128)\n"
                                     "w13_weight, w2_weight: I32 {}\n"
                                     "w13_weight_scale, w2_weight_scale: {}\n"
                                     "w13_bias, w2_bias: {} [E, N'], when loaded",
                                     words.weights, words.scales, words.biases),
          .formula = words.formula,
          .preconditions = words.preconditions,
          .source = words.source,
          .kernel_library = words.library,
          .outputs = [=](const LayoutInput& in) { return humming_outputs(in, weight, scale); },
          .reads = {.params_dtype = true}};
}

// With second scales, which `second` names.
Layout rounded(const HummingWords& words, const char* second,
               HummingRoundedWeights (*weights)(const LayoutInput&)) {
  Layout layout = humming_layout(words, nullptr, nullptr);
  layout.outputs_doc += fmt::format("\n{}", second);
  layout.outputs = [=](const LayoutInput& input) {
    return humming_rounded_outputs(input, weights(input));
  };
  layout.check_data = [=](const LayoutInput& input, Slot slot, ConstBytes granule) {
    return check_humming_granule(input, slot, granule, weights(input).rounding);
  };
  layout.refuses_scales = true;
  return layout;
}

constexpr const char* kMmaWords = "[E, K'/16, 2N']";
constexpr const char* kTileWords = "[E, K'/32, 4N']";
constexpr const char* kBytes = "U8 [E, K'/32, N'] (e8m0)";
constexpr const char* kRowWords = "[E, N', K'/8]";
constexpr const char* kScaleWords = "I32 [E, K'/128, N']";
constexpr const char* kFp16Only = "H and I multiples of 32; no biases";
constexpr const char* kSecondF32 = "w13_weight_scale_2, w2_weight_scale_2: F32 [E]";
constexpr const char* kGlobal = "w13_global_scale, w2_global_scale: F32 [E]";

HummingRoundedWeights w4a8_weights(const LayoutInput& input) {
  return {w8_activation_weight_tiles, 32, humming_rounding(input.parameters.humming_input_dtype)};
}

HummingRoundedWeights int8_weights(const LayoutInput& input) {
  HummingRounding rounding = kHummingInt8Rounding;
  if (input.parameters.params_dtype == "float16") rounding.row_type = DType::kF16;
  return {w8_activation_weight_tiles, 32, rounding};
}

template <const HummingRounding& kRounding>
HummingRoundedWeights fp8_weights(const LayoutInput&) {
  return {w8_activation_weight_tiles, 32, kRounding, &kMagnitudesApart};
}

HummingRoundedWeights packed_k_weights(const LayoutInput&) {
  return {w8_activation_packed_k_tiles, 64, kHummingFp8Rounding, &kMagnitudesApart};
}

Layout w4a8() {
  Layout layout = rounded(
      {"humming/w4a8", kTileWords, kBytes,
       "as humming/mma\n"
       "max, min over the expert's padded scale bytes s\n"
       "span = 12 (float8e4m3) or 3 (int8)\n"
       "base = max - min(max - min, span)\n"
       "d = max(s, base) - s\n"
       "scale: max(s, base) - base\n"
       "second scale: 2^(base - 127), halved for int8\n"
       "code: -0 becomes 0, then the magnitude * 2^-d is rounded to the nearest code, ties up\n"
       "code (n,k): nibble P of word [k/32][c]\n"
       "c = 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8\n"
       "P = 2*(k%4) + (k/16)%2",
       kOldestSource, kOldestLibrary,
       "as humming/mma; an expert's scale bytes lie at most 127 + span apart", "BF16"},
      kGlobal, w4a8_weights);
  layout.reads.humming_input_dtype = true;
  return layout;
}

}  // namespace

const Layout kHummingMmaLayout =
    humming_layout({"humming/mma", kMmaWords, kBytes,
                    "padded with codes 0, scale bytes 127, biases 0\n"
                    "code (n,k): nibble P of word [k/16][c]\n"
                    "c = 128*(n/64) + 16*(n%8) + 4*((k%8)/2) + (n%64)/16\n"
                    "P = 4*(k%2) + 2*((n/8)%2) + (k/8)%2\n"
                    "scale (n,g): [g][64*(n/64) + 8*(n%8) + (n%64)/8]\n"
                    "bias n: 32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2",
                    kOldestSource, kOldestLibrary},
                   mma_weight, humming_scale_output);

const Layout kHummingMmaNativeLayout =
    humming_layout({"humming/mma-native", kMmaWords, kBytes,
                    "as humming/mma\n"
                    "P = 4*((n/8)%2) + 2*((k/8)%2) + k%2",
                    kNewerSource, "humming-kernels 0.1.16, 0.1.17 and 0.1.19"},
                   native_weight, humming_scale_output);

const Layout kHummingMmaFp16Layout = humming_layout({"humming/mma-fp16", kMmaWords, kBytes,
                                                     "as humming/mma\n"
                                                     "scale: 8*max(0, min(s - 112, 30))",
                                                     kNewerSource, kNewerLibrary, kFp16Only},
                                                    mma_weight, fp16_scale);

const Layout kHummingMmaNativeFp16Layout =
    humming_layout({"humming/mma-native-fp16", kMmaWords, kBytes,
                    "as humming/mma-native\n"
                    "scale: 8*max(0, min(s - 112, 30))",
                    kNewerSource, kNewerLibrary, kFp16Only},
                   native_weight, fp16_scale);

const Layout kHummingWgmmaLayout = humming_layout({"humming/wgmma", kMmaWords, kBytes,
                                                   "as humming/mma\n"
                                                   "P = 4*(k%2) + 2*((k/8)%2) + (n/8)%2",
                                                   kOldestSource, kOldestLibrary},
                                                  wgmma_weight, humming_scale_output);

const Layout kHummingW4A8Layout = w4a8();

const Layout kHummingInt8Layout = rounded(
    {"humming/int8", kTileWords, kBytes,
     "as humming/mma\n"
     "max, min over the row's padded scale bytes s, whose new columns repeat the row's largest\n"
     "base = max - min(max - min, 3)\n"
     "d = max(s, base) - s\n"
     "scale: max(s, base) - base\n"
     "second scale: 2^(base - 128), 0 for new rows, in the order of biases\n"
     "code: -0 becomes 0, then the magnitude * 2^-d is rounded to the nearest code, ties up\n"
     "code (n,k): nibble P of word [k/32][c]\n"
     "c = 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8\n"
     "P = 2*(k%4) + (k/16)%2",
     kNewerSource, kNewerLibrary, "as humming/mma; a row's scale bytes lie at most 130 apart"},
    "w13_weight_scale_2, w2_weight_scale_2: BF16 or F16 [E, N'] (params_dtype)", int8_weights);

const Layout kHummingFp8Layout = rounded(
    {"humming/fp8", kTileWords, kBytes,
     "as humming/mma\n"
     "max, min over the expert's padded scale bytes s, whose new columns repeat the row's "
     "largest\n"
     "base = max - min(max - min, 11)\n"
     "d = max(s, base) - s\n"
     "scale: max(s, base) - base + 1\n"
     "second scale: 2^(base - 128)\n"
     "code: -0 becomes 0, then the magnitude * 2^-d is rounded to the nearest code, ties up\n"
     "sign (n,k): nibble 2*(k%4) + (k/16)%2 of word W\n"
     "magnitude (n,k): nibble 4*((k/16)%2) + k%4 of word W\n"
     "W = (k/32)*4N' + 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8",
     kNewerSource, kNewerLibrary, "as humming/mma; an expert's scale bytes lie at most 138 apart"},
    kSecondF32, fp8_weights<kHummingFp8Rounding>);

const Layout kHummingFp8GlobalLayout =
    rounded({"humming/fp8-global", kTileWords, kBytes,
             "as humming/fp8\n"
             "max, min over the expert's padded scale bytes s",
             "vLLM 0.27.0 quantization/utils/humming_utils.py; humming-kernels 0.1.10 layer.py, "
             "include/humming/kernel/process.cuh, process_mxfp4.cuh",
             "humming-kernels 0.1.4, 0.1.6 and 0.1.10", "as humming/fp8"},
            kGlobal, fp8_weights<kHummingFp8GlobalRounding>);

const Layout kHummingFp8PackedKLayout =
    rounded({"humming/fp8-packed-k", "[E, K'/64, 8N']", kBytes,
             "as humming/fp8\n"
             "W = (k/64)*8N' + 128*(n/16) + 16*(n%8) + 4*((k%16)/4) + 2*((k%64)/32) + (n%16)/8",
             kNewerSource, kNewerLibrary, "as humming/fp8"},
            kSecondF32, packed_k_weights);

const Layout kHummingUmmaLayout = humming_layout({"humming/umma", kRowWords, kScaleWords,
                                                  "as humming/mma\n"
                                                  "weights: as loaded\n"
                                                  "scale (n,g): byte g%4 of word [g/4][c]\n"
                                                  "c = 128*(n/128) + 4*(n%32) + (n%128)/32"},
                                                 padded_weight_output, umma_scale_output);

const Layout kHummingMxmmaFp8Layout =
    humming_layout({"humming/mxmma-fp8", kTileWords, "I32 [E, K'/64, N'/2]",
                    "as humming/mma\n"
                    "code (n,k): nibble P of word [k/32][c]\n"
                    "c = 128*(n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8\n"
                    "P = 2*(k%4) + (k/16)%2\n"
                    "scale (n,g): byte 2*((n%16)/8) + g%2 of word [g/2][8*(n/16) + n%8]"},
                   tiled_weight_output, mxmma_fp8_scale_output);

const Layout kHummingMxmmaFp4Layout =
    humming_layout({"humming/mxmma-fp4", kRowWords, kScaleWords,
                    "as humming/mma\n"
                    "code (n,k): nibble k%8 of word 4*((k/32)*N' + n) + (k%32)/8\n"
                    "scale (n,g): byte g%4 of word [g/4][n]"},
                   flat_weight_output, mxmma_fp4_scale_output);

const Layout kHummingMxmmaFp4TilesLayout = humming_layout(
    {"humming/mxmma-fp4-tiles", "[E, K'/64, 8N']", kScaleWords,
     "as humming/mma\n"
     "code (n,k): nibble k%8 of word [k/64][c]\n"
     "c = 128*(n/16) + 16*(n%8) + 4*((k%32)/8) + 2*((n%16)/8) + (k%64)/32\n"
     "scale (n,g): byte g%4 of word [g/4][n]",
     "vLLM 0.31.0 quantization/utils/humming/moe.py; humming-kernels 0.1.16 transform.py, "
     "config/config.py, include/humming/kernel/process.cuh",
     "humming-kernels 0.1.12 and 0.1.16"},
    fp4_tiled_weight_output, mxmma_fp4_scale_output);

}  // namespace mxfp4
