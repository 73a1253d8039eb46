// HUMMING, both families alike; rows keep their loaded order. The layout itself pads each matrix at
// the end. The words of a tile are in mma_tiles.hpp's orders:
//   mma_weight_tiles         activations of 16 bits
//   wgmma_weight_tiles       on capability 9.x, as long as humming-kernels is older than 0.1.17
//   mma_native_weight_tiles  from capability 10.0 on, where humming-kernels 0.1.16 or later finds a
//                            CUDA compiler that converts e2m1 itself: 13.2, for FP16 12.7
//   w8_activation_weight_tiles  activations of 8 bits, which requantise first: humming_requantize.hpp
// With FP16 and humming-kernels 0.1.17 or later scales are as kE8m0ToE5m0 (recodings.hpp)
// makes them.
//
// Example: the scale (n, g) = (10, g) goes to [g][17].
#include "lib/layouts/humming_common.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {
namespace {

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

HummingRounding rounding_of(const LayoutInput& input) {
  return humming_rounding(input.parameters.humming_input_dtype);
}

std::vector<Output> outputs_8bit(const LayoutInput& input) {
  return humming_rounded_outputs(input, {w8_activation_weight_tiles, 32, rounding_of(input)});
}

std::string check_8bit_scales(const LayoutInput& input, Slot slot, ConstBytes granule) {
  return check_humming_granule(input, slot, granule, rounding_of(input));
}

constexpr std::string_view kMmaOutputs =
    "N' = up(N,256), K' = up(K,128)\n"
    "w13_weight, w2_weight: I32 [E, K'/16, 2N']\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
    "w13_bias, w2_bias: BF16 or F16 [E, N'], when loaded";
constexpr std::string_view kMmaPreconditions =
    "H and I multiples of 32; biases in the params dtype";
constexpr std::string_view kFp16Preconditions = "H and I multiples of 32; no biases";
constexpr std::string_view kHummingSource =
    "vLLM a2c8fc6657 quantization/utils/humming_utils.py; humming-kernels a6455de "
    "schema/mxfp4.py, ops/weight.py, include/humming/kernel/process.cuh, process_mxfp4.cuh";
constexpr std::string_view kHummingLibrary = "humming-kernels 0.1.0a1 (a6455de)";

}  // namespace

const Layout kHummingMmaLayout = {
    .id = "humming/mma",
    .outputs_doc = kMmaOutputs,
    .formula =
        "padded with codes 0, scale bytes 127, biases 0\n"
        "code (n,k): nibble P of word [k/16][c]\n"
        "c = 128*(n/64) + 16*(n%8) + 4*((k%8)/2) + (n%64)/16\n"
        "P = 4*(k%2) + 2*((n/8)%2) + (k/8)%2\n"
        "scale (n,g): [g][64*(n/64) + 8*(n%8) + (n%64)/8]\n"
        "bias n: 32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2",
    .preconditions = kMmaPreconditions,
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, mma_weight, humming_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingMmaNativeLayout = {
    .id = "humming/mma-native",
    .outputs_doc = kMmaOutputs,
    .formula =
        "as humming/mma\n"
        "P = 4*((n/8)%2) + 2*((k/8)%2) + k%2",
    .preconditions = kMmaPreconditions,
    .source = kHummingNewerSource,
    .kernel_library = "humming-kernels 0.1.16, 0.1.17 and 0.1.19",
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, native_weight, humming_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingMmaFp16Layout = {
    .id = "humming/mma-fp16",
    .outputs_doc = kMmaOutputs,
    .formula =
        "as humming/mma\n"
        "scale: 8*max(0, min(s - 112, 30))",
    .preconditions = kFp16Preconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, mma_weight, fp16_scale); },
    .reads = {.params_dtype = true},
};

const Layout kHummingMmaNativeFp16Layout = {
    .id = "humming/mma-native-fp16",
    .outputs_doc = kMmaOutputs,
    .formula =
        "as humming/mma-native\n"
        "scale: 8*max(0, min(s - 112, 30))",
    .preconditions = kFp16Preconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, native_weight, fp16_scale); },
    .reads = {.params_dtype = true},
};

const Layout kHummingWgmmaLayout = {
    .id = "humming/wgmma",
    .outputs_doc = kMmaOutputs,
    .formula =
        "as humming/mma\n"
        "P = 4*(k%2) + 2*((k/8)%2) + (n/8)%2",
    .preconditions = kMmaPreconditions,
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, wgmma_weight, humming_scale_output);
        },
    .reads = {.params_dtype = true},
};

const Layout kHummingW4A8Layout = {
    .id = "humming/w4a8",
    .outputs_doc =
        "N' = up(N,256), K' = up(K,128)\n"
        "w13_weight, w2_weight: I32 [E, K'/32, 4N']\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K'/32, N'] (e8m0)\n"
        "w13_bias, w2_bias: BF16 [E, N'], when loaded\n"
        "w13_global_scale, w2_global_scale: F32 [E]",
    .formula =
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
    .preconditions = "as humming/mma; an expert's scale bytes lie at most 127 + span apart",
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs = outputs_8bit,
    .check_data = check_8bit_scales,
    .refuses_scales = true,
    .reads = {.params_dtype = true, .humming_input_dtype = true},
};

}  // namespace mxfp4
