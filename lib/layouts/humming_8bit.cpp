// HUMMING with 8-bit activations and humming-kernels 0.1.4 or later, both families alike, padded as
// humming.cpp pads. From 0.1.12 on new columns of scales repeat the row's largest byte instead.
// Codes and scales are rounded first (humming_requantize.hpp): by expert for FP8, by row for INT8.
// With FP8 the kernel takes a word's magnitudes in another order than its signs:
// kMagnitudesApart (recodings.hpp).
#include "lib/layouts/humming_common.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {
namespace {

HummingRounding int8_rounding(const LayoutInput& input) {
  HummingRounding rounding = kHummingInt8Rounding;
  if (input.parameters.params_dtype == "float16") rounding.row_type = DType::kF16;
  return rounding;
}

constexpr HummingRoundedWeights kFp8Weights{w8_activation_weight_tiles, 32, kHummingFp8Rounding,
                                            &kMagnitudesApart};
constexpr HummingRoundedWeights kFp8PackedKWeights{w8_activation_packed_k_tiles, 64,
                                                   kHummingFp8Rounding, &kMagnitudesApart};
constexpr HummingRoundedWeights kFp8GlobalWeights{w8_activation_weight_tiles, 32,
                                                  kHummingFp8GlobalRounding, &kMagnitudesApart};

std::string check_fp8_rounding(const LayoutInput& input, Slot slot, ConstBytes granule) {
  return check_humming_granule(input, slot, granule, kHummingFp8Rounding);
}

}  // namespace

const Layout kHummingInt8Layout = {
    .id = "humming/int8",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/32, 4N']\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded\n"
        "w13_weight_scale_2, w2_weight_scale_2: BF16 or F16 [E, N'] (params_dtype)",
    .formula =
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
    .preconditions = "as humming/mma; a row's scale bytes lie at most 130 apart",
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_rounded_outputs(input,
                                         {w8_activation_weight_tiles, 32, int8_rounding(input)});
        },
    .check_data =
        [](const LayoutInput& input, Slot slot, ConstBytes granule) {
          return check_humming_granule(input, slot, granule, int8_rounding(input));
        },
    .refuses_scales = true,
    .reads = {.params_dtype = true},
};

const Layout kHummingFp8Layout = {
    .id = "humming/fp8",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/32, 4N']\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded\n"
        "w13_weight_scale_2, w2_weight_scale_2: F32 [E]",
    .formula =
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
    .preconditions = "as humming/mma; an expert's scale bytes lie at most 138 apart",
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs = [](const LayoutInput& input) { return humming_rounded_outputs(input, kFp8Weights); },
    .check_data = check_fp8_rounding,
    .refuses_scales = true,
    .reads = {.params_dtype = true},
};

const Layout kHummingFp8GlobalLayout = {
    .id = "humming/fp8-global",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/32, 4N']\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded\n"
        "w13_global_scale, w2_global_scale: F32 [E]",
    .formula =
        "as humming/fp8\n"
        "max, min over the expert's padded scale bytes s",
    .preconditions = "as humming/fp8",
    .source =
        "vLLM 0.27.0 quantization/utils/humming_utils.py; humming-kernels 0.1.10 layer.py, "
        "include/humming/kernel/process.cuh, process_mxfp4.cuh",
    .kernel_library = "humming-kernels 0.1.4, 0.1.6 and 0.1.10",
    .outputs =
        [](const LayoutInput& input) { return humming_rounded_outputs(input, kFp8GlobalWeights); },
    .check_data =
        [](const LayoutInput& input, Slot slot, ConstBytes granule) {
          return check_humming_granule(input, slot, granule, kHummingFp8GlobalRounding);
        },
    .refuses_scales = true,
    .reads = {.params_dtype = true},
};

const Layout kHummingFp8PackedKLayout = {
    .id = "humming/fp8-packed-k",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/64, 8N']\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
        "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded\n"
        "w13_weight_scale_2, w2_weight_scale_2: F32 [E]",
    .formula =
        "as humming/fp8\n"
        "W = (k/64)*8N' + 128*(n/16) + 16*(n%8) + 4*((k%16)/4) + 2*((k%64)/32) + (n%16)/8",
    .preconditions = "as humming/fp8",
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_rounded_outputs(input, kFp8PackedKWeights); },
    .check_data = check_fp8_rounding,
    .refuses_scales = true,
    .reads = {.params_dtype = true},
};

}  // namespace mxfp4
