// HUMMING, both families alike; rows keep their loaded order. The layout itself pads each matrix,
// at the end: rows N to N' = up(N, 256), columns K to K' = up(K, 128), where w13 has N = 2I, K = H
// and w2 N = H, K = I. New codes are 0, scale bytes 127 (1.0), biases 0. `/` is integer division.
//
//   weight   I32 [E, K'/16, 2N']       mma_weight_tiles (mma_tiles.hpp)
//                                      wgmma_weight_tiles on compute capability 9.x, as long as
//                                      humming-kernels is older than 0.1.17
//                                      mma_native_weight_tiles from capability 10.0 on, where
//                                      humming-kernels 0.1.16 or later finds a CUDA compiler that
//                                      converts e2m1 itself: 13.2, for FP16 12.7
//            I32 [E, K'/32, 4N']       w8_activation_weight_tiles with 8-bit activations
//   scale    U8 (e8m0) [E, K'/32, N']  (n, g) -> [g][64*(n/64) + 8*(n%8) + (n%64)/8]   (n = 10: 17)
//                                      with FP16 and humming-kernels 0.1.17 or later as kE8m0ToE5m0
//                                      (recodings.hpp) makes them
//   bias     params dtype [E, N']      mma_bias_order; optional
//   w13_global_scale, w2_global_scale  F32 [E], with 8-bit activations, which requantise first:
//                                      humming_requantize.hpp
//
// Preconditions: H and I multiples of 32; biases in params dtype; 8-bit: scale bytes of one expert
// at most 127 + span apart.
// Source: vLLM a2c8fc6657 quantization/utils/humming_utils.py with humming-kernels 0.1.0a1
// (a6455de) schema/mxfp4.py, ops/weight.py, include/humming/kernel/process.cuh, process_mxfp4.cuh.
#include "lib/layouts/all.hpp"
#include "lib/layouts/humming_common.hpp"
#include "lib/layouts/knobs.hpp"
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
  return humming_rounding(humming_input_dtype(input.target));
}

std::vector<Output> outputs_8bit(const LayoutInput& input) {
  return humming_rounded_outputs(input, {w8_activation_weight_tiles, 32, rounding_of(input)});
}

std::string check_8bit_scales(const LayoutInput& input, Slot slot, ConstBytes granule) {
  return check_humming_granule(input, slot, granule, rounding_of(input));
}

constexpr std::string_view kMmaPreconditions =
    "H and I multiples of 32; biases in the params dtype";
constexpr std::string_view kFp16Preconditions = "H and I multiples of 32; no biases";
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
    .preconditions = kMmaPreconditions,
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, mma_weight, humming_scale_output);
        },
    .check_data = nullptr,
};

const Layout kHummingMmaNativeLayout = {
    .id = "humming/mma-native",
    .backends =
        "HUMMING from vLLM 0.31.0 on, compute capability 10.0 or above, cuda_compiler 13.2 or "
        "later; in 0.31.0 with float16 12.7 or later",
    .outputs_doc = "as humming/mma",
    .formula = "as humming/mma with P = 4*((n/8)%2) + 2*((k/8)%2) + k%2",
    .preconditions = kMmaPreconditions,
    .source = kHummingNewerSource,
    .kernel_library = "humming-kernels 0.1.16, 0.1.17 and 0.1.19",
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, native_weight, humming_scale_output);
        },
    .check_data = nullptr,
};

const Layout kHummingMmaFp16Layout = {
    .id = "humming/mma-fp16",
    .backends = "HUMMING from vLLM 0.32.0 on, params_dtype=float16",
    .outputs_doc = "as humming/mma",
    .formula = "as humming/mma; a scale byte s becomes 8*max(0, min(s - 112, 30))",
    .preconditions = kFp16Preconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, mma_weight, fp16_scale); },
    .check_data = nullptr,
};

const Layout kHummingMmaNativeFp16Layout = {
    .id = "humming/mma-native-fp16",
    .backends =
        "HUMMING from vLLM 0.32.0 on, params_dtype=float16, compute capability 10.0 or above, "
        "cuda_compiler 12.7 or later",
    .outputs_doc = "as humming/mma",
    .formula = "weights as humming/mma-native, scales as humming/mma-fp16",
    .preconditions = kFp16Preconditions,
    .source = kHummingNewerSource,
    .kernel_library = kHummingNewerLibrary,
    .outputs =
        [](const LayoutInput& input) { return humming_outputs(input, native_weight, fp16_scale); },
    .check_data = nullptr,
};

const Layout kHummingWgmmaLayout = {
    .id = "humming/wgmma",
    .backends = "HUMMING, compute capability 9.x, with older humming-kernels",
    .outputs_doc = "as humming/mma",
    .formula = "as humming/mma with P = 4*(k%2) + 2*((k/8)%2) + (n/8)%2",
    .preconditions = kMmaPreconditions,
    .source = kHummingSource,
    .kernel_library = kHummingLibrary,
    .outputs =
        [](const LayoutInput& input) {
          return humming_outputs(input, wgmma_weight, humming_scale_output);
        },
    .check_data = nullptr,
};

const Layout kHummingW4A8Layout = {
    .id = "humming/w4a8",
    .backends = "HUMMING with humming_input_dtype=float8e4m3 or int8, with older humming-kernels",
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
