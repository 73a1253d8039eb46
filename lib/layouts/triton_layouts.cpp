// The layouts of triton_kernels: TRITON, TRITON_UNFUSED and AITER's backends that go through it.
// Each is one way to swizzle values, one to swizzle scales (triton_swizzles.cpp), and one to
// interleave w13 first; AITER_MXFP4_FP8 also reduces each projection's input scales to one, and
// warns where they differ: 0.25, 0.5, 0.25 -> 0.5.
#include "lib/layouts/triton_layouts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"

namespace mxfp4 {
namespace {

struct TritonWords {
  std::string_view id, outputs_doc, formula, preconditions, source, kernel_library;
};

// H and I have to be multiples of kMultiple.
template <const Layout& kSelf, const TritonSwizzle& kValue, const TritonSwizzle& kScale,
          W13Weave kWeave = W13Weave::kNone, int64_t kMultiple = 1, bool kInputScales = false>
constexpr Layout triton_layout(const TritonWords& words) {
  return {.id = words.id,
          .outputs_doc = words.outputs_doc,
          .formula = words.formula,
          .preconditions = words.preconditions,
          .source = words.source,
          .kernel_library = words.kernel_library,
          .outputs =
              [](const LayoutInput& input) {
                return triton_outputs(kSelf.id, input,
                                      {kValue, kScale, kWeave, kMultiple, kInputScales});
              },
          .check_data = kInputScales ? check_input_scales : nullptr};
}

// Texts, one behind another.
template <const std::string_view&... kParts>
constexpr auto kJoined = [] {
  std::array<char, (kParts.size() + ...)> text{};
  size_t at = 0;
  ((std::ranges::copy(kParts, text.begin() + at), at += kParts.size()), ...);
  return text;
}();

// What of Layout::outputs_doc is the same for all of them; shapes of values, of scales, a last line.
constexpr std::string_view kValuesAre = "w13_weight, w2_weight: U8 ";
constexpr std::string_view kScalesAre = "\nw13_weight_scale, w2_weight_scale: U8 ";
constexpr std::string_view kBiasesAre = "\nw13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kNoNote;
template <const std::string_view& kValues, const std::string_view& kScales,
          const std::string_view& kNote = kNoNote>
constexpr std::string_view kOutputs{
    kJoined<kValuesAre, kValues, kScalesAre, kScales, kBiasesAre, kNote>.data(),
    kJoined<kValuesAre, kValues, kScalesAre, kScales, kBiasesAre, kNote>.size()};

constexpr std::string_view kBy16 = "[E, up(N,16)/4, 4*up(C,32)]";
constexpr std::string_view kBy64 = "[E, up(N,64)/4, 4*up(C,64)]";
constexpr std::string_view kBy256 = "[E, up(N,256)/4, 4*up(C,64)]";
constexpr std::string_view kBy128Bytes = "[E, N, up(C,128)]";
constexpr std::string_view kAsLoaded = "[E, N, C]";
constexpr std::string_view kScalesBy2 = "[E, up(N,256)/32, 32*up(S,2)]";
constexpr std::string_view kScalesBy4 = "[E, up(N,256)/32, 32*up(S,4)]";
constexpr std::string_view kScaleTiles = "[1, E*up(N,128)/128, up(S,8)/4, 2, 256]";
constexpr std::string_view kScalesOf32 = "[E, N/32, 32*S]";
constexpr std::string_view kScalesAsLoaded = "[E, N, S]";
constexpr std::string_view kScalesTransposed = "[E, S, N]";
constexpr std::string_view kScalesBy8 = "[E, up(N,32)/32, 32*up(S,8)]";
constexpr std::string_view kScalesOf32Transposed = "[E, 32*S, N/32]";
constexpr std::string_view kSplitK = "\nkernel option to set: split_k=1";
constexpr std::string_view kPersistent =
    "\nkernel options to set on capability 10.x: is_persistent=true, epilogue_subtile=1";
constexpr std::string_view kInputScale = "\nw13_input_scale, w2_input_scale: F32 []";

constexpr std::string_view kTritonHopperOutputs = kOutputs<kBy16, kScalesBy2, kSplitK>;
constexpr std::string_view kTritonHopperSource =
    "triton_kernels 3.6.0 layout_details/hopper_value.py, hopper_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonHopperFormula =
    "value byte (n,c): row 4*(n>>4) + ((n>>1)&3), word 32*(c>>5) + 16*(n&1) + 4*(c&3) + "
    "((c>>3)&3), slot 2*((c>>2)&1) + ((n>>3)&1)\n"
    "the four bytes of a word then mix: half(low nibbles) | half(high nibbles) << 16, where half "
    "puts the bits of the codes a, b, c, d of slots 0..3 as\n"
    "  bit 15  14  13  12  11  10  9   8..6  5..3  2..0\n"
    "      a.3 d.3 d.0 b.3 d.2 d.1 c.3 a.210 b.210 c.210\n"
    "scale (n,s): row 8*(n/256) + ((n>>4)&7), column 64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + 2*(s&1) "
    "+ ((n>>3)&1)";
constexpr std::string_view kTritonHopper64Outputs = kOutputs<kBy64, kScalesBy2, kSplitK>;
constexpr std::string_view kTritonHopper64Source =
    "vLLM 0.21.0 quantization/utils/mxfp4_utils.py, _swizzle_mxfp4, and the wheel's "
    "triton_kernels, layout_details/hopper_value.py, hopper_scale.py";
constexpr std::string_view kTritonHopper64OnesOutputs = kOutputs<kBy64, kScalesBy4, kSplitK>;
constexpr std::string_view kTritonHopper64OnesSource =
    "SGLang 0.5.20 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
    "sglang-kernel 0.4.7, layout_details/hopper_value.py, hopper_scale.py";
constexpr std::string_view kTritonHopper256OnesOutputs = kOutputs<kBy256, kScalesBy4, kSplitK>;
constexpr std::string_view kTritonHopper256OnesSource =
    "SGLang 0.5.23 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
    "sglang-kernel 0.4.10, layout_details/hopper_value.py, hopper_scale.py";
constexpr std::string_view kTritonHopperS4Outputs = kOutputs<kBy16, kScalesBy4, kSplitK>;
constexpr std::string_view kTritonHopperS4Source =
    "triton_kernels 3.5.1 layout_details/hopper_value.py, hopper_scale.py; vLLM 017e9f4448 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonBlackwellOutputs =
    kOutputs<kBy128Bytes, kScaleTiles, kPersistent>;
constexpr std::string_view kTritonBlackwellSource =
    "triton_kernels 3.6.0 layout_details/blackwell_value.py, blackwell_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonCdna4Outputs = kOutputs<kAsLoaded, kScalesOf32>;
constexpr std::string_view kTritonCdna4Source =
    "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonCdna4RowInterleavedSource =
    "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM 0.30.0 "
    "fused_moe/oracle/mxfp4.py";
constexpr std::string_view kAiterW4a8Fp8Outputs = kOutputs<kAsLoaded, kScalesOf32, kInputScale>;
constexpr std::string_view kAiterW4a8Fp8Source =
    "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
    "fused_moe/oracle/mxfp4.py";
constexpr std::string_view kTritonStridedOutputs = kOutputs<kAsLoaded, kScalesAsLoaded>;
constexpr std::string_view kTritonStridedSource =
    "triton_kernels 3.6.0 layout_details/strided.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTritonStridedRowInterleavedSource =
    "triton_kernels 3.6.0 layout_details/strided.py; vLLM 0.30.0 fused_moe/oracle/mxfp4.py";
constexpr std::string_view kAiterW4a8Fp8StridedOutputs =
    kOutputs<kAsLoaded, kScalesAsLoaded, kInputScale>;
constexpr std::string_view kAiterW4a8Fp8StridedSource =
    "triton_kernels layout_details/strided.py; vLLM 017e9f4448 fused_moe/oracle/mxfp4.py, "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTriton38StridedOutputs = kOutputs<kAsLoaded, kScalesTransposed>;
constexpr std::string_view kTriton38StridedSource =
    "triton_kernels 3.8 layout_details/strided.py, cdna4_scale.py; vLLM 0.31.0 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTriton38Cdna4Outputs = kOutputs<kAsLoaded, kScalesBy8>;
constexpr std::string_view kTriton38Gfx1250Outputs = kOutputs<kAsLoaded, kScalesOf32Transposed>;
constexpr std::string_view kTriton38Gfx1250Source =
    "triton_kernels 3.8 layout_details/strided.py; ROCm/aiter 73d928d61b9b "
    "aiter/ops/triton/utils/shuffle.py, shuffle_scale_moe; vLLM 0.33.0 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kAiterW4a8Triton38StridedOutputs =
    kOutputs<kAsLoaded, kScalesTransposed, kInputScale>;
constexpr std::string_view kAiterW4a8Triton38Cdna4Outputs =
    kOutputs<kAsLoaded, kScalesBy8, kInputScale>;
constexpr std::string_view kAiterW4a8Triton38Gfx1250Outputs =
    kOutputs<kAsLoaded, kScalesOf32Transposed, kInputScale>;

}  // namespace

// Capability 9.0: Hopper value and scale layouts (mma version 3, 8 warps). Value bytes move into
// 32-bit words, little-endian, and the bits of a word then mix, so that the kernel can widen codes
// without shifts. A lone byte 0xB4 at (n, c) = (13, 45) of N = 16, C = 64 gives word 53 of row 2
// the value 0x64000800; the scale (n, s) = (413, 3) goes to row 9, column 119.
const Layout kTritonHopperLayout = triton_layout<kTritonHopperLayout, kHopperValues, kHopperScales>(
    {"triton/hopper", kTritonHopperOutputs, kTritonHopperFormula, "none", kTritonHopperSource,
     "triton_kernels 3.6.0"});

const Layout kTritonHopperKInterleavedLayout =
    triton_layout<kTritonHopperKInterleavedLayout, kHopperValues, kHopperScales,
                  W13Weave::kLastAxis>(
        {"triton/hopper-k-interleaved", kTritonHopperOutputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton/hopper",
         "H a multiple of 64", kTritonHopperSource, "triton_kernels 3.6.0"});

// The same with values first padded to multiples of 64 both ways: H = 2880 has C = 1440, padded
// 1472, so a row of w13's output has 5888 bytes.
const Layout kTritonHopper64Layout =
    triton_layout<kTritonHopper64Layout, kHopper64Values, kHopperScales>(
        {"triton/hopper-64", kTritonHopper64Outputs,
         "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
         "scale (n,s): as triton/hopper",
         "none", kTritonHopper64Source, "triton_kernels in the wheel of vLLM 0.21.0"});

const Layout kTritonHopper64KInterleavedLayout =
    triton_layout<kTritonHopper64KInterleavedLayout, kHopper64Values, kHopperScales,
                  W13Weave::kLastAxis>(
        {"triton/hopper-64-k-interleaved", kTritonHopper64Outputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton/hopper-64",
         "H a multiple of 64", kTritonHopper64Source,
         "triton_kernels in the wheel of vLLM 0.21.0"});

// SGLang first pads the columns of scales to a multiple of 4 with 1.0 (0x7F), and triton_kernels
// the values to multiples of 64, or of 256 rows: with I = 2880 w13's 5760 rows become 5888, w2's
// 2880 3072.
const Layout kTritonHopper64OnesLayout =
    triton_layout<kTritonHopper64OnesLayout, kHopper64Values, kHopperScalesByFourOnes>(
        {"triton/hopper-64-ones", kTritonHopper64OnesOutputs,
         "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
         "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper",
         "none", kTritonHopper64OnesSource, "triton_kernels in sglang-kernel 0.4.7"});

const Layout kTritonHopper256OnesLayout =
    triton_layout<kTritonHopper256OnesLayout, kHopper256Values, kHopperScalesByFourOnes>(
        {"triton/hopper-256-ones", kTritonHopper256OnesOutputs,
         "value byte (n,c), rows padded to a multiple of 256 and columns of 64 with 0: as "
         "triton/hopper\n"
         "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper",
         "none", kTritonHopper256OnesSource, "triton_kernels in sglang-kernel 0.4.10"});

// Scale columns padded to a multiple of 4, so that the kernel's reads of four groups at a time end
// inside the tensor: H = 2880 has S = 90, padded 92.
const Layout kTritonHopperS4Layout =
    triton_layout<kTritonHopperS4Layout, kHopperValues, kHopperScalesByFour>(
        {"triton/hopper-s4", kTritonHopperS4Outputs,
         "value byte (n,c): as triton/hopper\n"
         "scale (n,s), columns padded to a multiple of 4 with 0: row 8*(n/256) + ((n>>4)&7), "
         "column 64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + 2*(s&1) + ((n>>3)&1)",
         "none", kTritonHopperS4Source, "triton_kernels 3.5.1"});

const Layout kTritonHopperS4KInterleavedLayout =
    triton_layout<kTritonHopperS4KInterleavedLayout, kHopperValues, kHopperScalesByFour,
                  W13Weave::kLastAxis>(
        {"triton/hopper-s4-k-interleaved", kTritonHopperS4Outputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton/hopper-s4",
         "H a multiple of 64", kTritonHopperS4Source, "triton_kernels 3.5.1"});

// Capability 10.0 and above: values keep their place in rows padded to a multiple of 256 codes;
// scales are in 128 x 4 tiles. N = 128, S = 8, scale (n, s) = (37, 5) -> 597.
const Layout kTritonBlackwellLayout =
    triton_layout<kTritonBlackwellLayout, kBlackwellValues, kBlackwellScales>(
        {"triton/blackwell", kTritonBlackwellOutputs,
         "value byte (n,c): row n, column c\n"
         "scale (n,s): offset (((n>>7)*up(S,8)/4 + (s>>2)) << 9) + ((n&31) << 4) + (((n>>5)&3) << "
         "2) + (s&3)",
         "none", kTritonBlackwellSource, "triton_kernels 3.6.0"});

const Layout kTritonBlackwellKInterleavedLayout =
    triton_layout<kTritonBlackwellKInterleavedLayout, kBlackwellValues, kBlackwellScales,
                  W13Weave::kLastAxis>(
        {"triton/blackwell-k-interleaved", kTritonBlackwellOutputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton/blackwell",
         "H a multiple of 64", kTritonBlackwellSource, "triton_kernels 3.6.0"});

// gfx950: values as loaded, scales in CDNA4 order, which older packages call GFX950MXScaleLayout.
// The reference scrambles sizes that are not multiples of 256, and does not check. Scale (n, s) =
// (53, 13) -> row 1, column 343.
const Layout kTritonCdna4Layout = triton_layout<kTritonCdna4Layout, kStrided, kCdna4Scales,
                                                W13Weave::kNone, 256>(
    {"triton/cdna4", kTritonCdna4Outputs,
     "value byte (n,c): as loaded\n"
     "scale (n,s): row n>>5, column 256*(s>>3) + 64*(s&3) + 4*(n&15) + 2*((s>>2)&1) + ((n>>4)&1)",
     "H and I multiples of 256", kTritonCdna4Source, "triton_kernels 3.6.0"});

const Layout kTritonCdna4KInterleavedLayout =
    triton_layout<kTritonCdna4KInterleavedLayout, kStrided, kCdna4Scales, W13Weave::kLastAxis, 256>(
        {"triton/cdna4-k-interleaved", kTritonCdna4Outputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton/cdna4",
         "H and I multiples of 256", kTritonCdna4Source, "triton_kernels 3.6.0"});

const Layout kTritonCdna4RowInterleavedLayout =
    triton_layout<kTritonCdna4RowInterleavedLayout, kStrided, kCdna4Scales, W13Weave::kRows, 256>(
        {"triton/cdna4-row-interleaved", kTritonCdna4Outputs,
         "w13 first: row 2i+g takes row g*I+i, biases too\n"
         "value byte (n,c) and scale (n,s): as triton/cdna4",
         "H and I multiples of 256", kTritonCdna4RowInterleavedSource, "triton_kernels 3.6.0"});

const Layout kAiterW4a8Fp8Layout =
    triton_layout<kAiterW4a8Fp8Layout, kStrided, kCdna4Scales, W13Weave::kNone, 256, true>(
        {"aiter/w4a8-fp8", kAiterW4a8Fp8Outputs,
         "value byte (n,c): as loaded\n"
         "scale (n,s): as triton/cdna4\n"
         "input scale: maximum over the experts, NaN if any is NaN",
         "input scales present; at least one expert; H and I multiples of 256", kAiterW4a8Fp8Source,
         "triton_kernels 3.6.0"});

// Where no swizzle exists (CUDA below 9.0, ROCm other than gfx950, XPU): as loaded. The engine's
// view is [E, C, N] with strides (N C, 1, C). Row-interleaved, the rows 0 1 2 3 of w13 (I = 2:
// gate, gate, up, up) become 0 2 1 3.
const Layout kTritonStridedLayout = triton_layout<kTritonStridedLayout, kStrided, kStrided>(
    {"triton/strided", kTritonStridedOutputs, "values and scales as loaded", "none",
     kTritonStridedSource, "triton_kernels 3.6.0"});

const Layout kTritonStridedKInterleavedLayout =
    triton_layout<kTritonStridedKInterleavedLayout, kStrided, kStrided, W13Weave::kLastAxis>(
        {"triton/strided-k-interleaved", kTritonStridedOutputs,
         "w13: index d of the last axis takes (d>>1) + (d&1)*(n/2)", "H a multiple of 64",
         kTritonStridedSource, "triton_kernels 3.6.0"});

const Layout kTritonStridedRowInterleavedLayout =
    triton_layout<kTritonStridedRowInterleavedLayout, kStrided, kStrided, W13Weave::kRows>(
        {"triton/strided-row-interleaved", kTritonStridedOutputs,
         "w13: row 2i+g takes row g*I+i, biases too", "none", kTritonStridedRowInterleavedSource,
         "triton_kernels 3.6.0"});

const Layout kAiterW4a8Fp8StridedLayout =
    triton_layout<kAiterW4a8Fp8StridedLayout, kStrided, kStrided, W13Weave::kNone, 1, true>(
        {"aiter/w4a8-fp8-strided", kAiterW4a8Fp8StridedOutputs,
         "values and scales as loaded\n"
         "input scale: maximum over the experts, NaN if any is NaN",
         "input scales present; at least one expert", kAiterW4a8Fp8StridedSource, ""});

// triton_kernels 3.8, which vLLM's ROCm builds take: values as loaded; scales transposed, in CDNA4
// order (gfx950), or in AITER's tiles and then transposed (gfx1250). Older versions keep strided
// scales as loaded: there a layout is a class, here it is an object, and vLLM makes the one for
// scales with the last axis as the contiguous one. Scale (n, s) = (53, 13), N = 64: strided offset
// 13*64 + 53 = 885; gfx1250 row 469, column 1. Read from three versions of triton_kernels, one of
// them 3.8's; the commit that vLLM pins was not available (tests/engines/README.md).
const Layout kTriton38StridedLayout =
    triton_layout<kTriton38StridedLayout, kTriton38Values, kTriton38StridedScales>(
        {"triton38/strided", kTriton38StridedOutputs,
         "value byte (n,c): as loaded\n"
         "scale (n,s): row s, column n",
         "none", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38StridedKInterleavedLayout =
    triton_layout<kTriton38StridedKInterleavedLayout, kTriton38Values, kTriton38StridedScales,
                  W13Weave::kLastAxis>(
        {"triton38/strided-k-interleaved", kTriton38StridedOutputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton38/strided",
         "H a multiple of 64", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38StridedRowInterleavedLayout =
    triton_layout<kTriton38StridedRowInterleavedLayout, kTriton38Values, kTriton38StridedScales,
                  W13Weave::kRows>({"triton38/strided-row-interleaved", kTriton38StridedOutputs,
                                    "w13 first: row 2i+g takes row g*I+i, biases too\n"
                                    "value byte (n,c) and scale (n,s): as triton38/strided",
                                    "none", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38Cdna4Layout =
    triton_layout<kTriton38Cdna4Layout, kTriton38Values, kTriton38Cdna4Scales>(
        {"triton38/cdna4", kTriton38Cdna4Outputs,
         "value byte (n,c): as loaded\n"
         "scale (n,s), rows and columns padded with 0: as triton/cdna4",
         "none", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38Cdna4KInterleavedLayout =
    triton_layout<kTriton38Cdna4KInterleavedLayout, kTriton38Values, kTriton38Cdna4Scales,
                  W13Weave::kLastAxis>(
        {"triton38/cdna4-k-interleaved", kTriton38Cdna4Outputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton38/cdna4",
         "H a multiple of 64", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38Cdna4RowInterleavedLayout =
    triton_layout<kTriton38Cdna4RowInterleavedLayout, kTriton38Values, kTriton38Cdna4Scales,
                  W13Weave::kRows>({"triton38/cdna4-row-interleaved", kTriton38Cdna4Outputs,
                                    "w13 first: row 2i+g takes row g*I+i, biases too\n"
                                    "value byte (n,c) and scale (n,s): as triton38/cdna4",
                                    "none", kTriton38StridedSource, "triton_kernels 3.8"});

const Layout kTriton38Gfx1250Layout =
    triton_layout<kTriton38Gfx1250Layout, kTriton38Values, kTriton38Gfx1250Scales, W13Weave::kNone,
                  128>({"triton38/gfx1250", kTriton38Gfx1250Outputs,
                        "value byte (n,c): as loaded\n"
                        "scale (n,s): row 128*(s/4) + 4*(n%32) + s%4, column n/32",
                        "H and I multiples of 128", kTriton38Gfx1250Source, "triton_kernels 3.8"});

const Layout kTriton38Gfx1250KInterleavedLayout =
    triton_layout<kTriton38Gfx1250KInterleavedLayout, kTriton38Values, kTriton38Gfx1250Scales,
                  W13Weave::kLastAxis, 128>(
        {"triton38/gfx1250-k-interleaved", kTriton38Gfx1250Outputs,
         "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
         "value byte (n,c) and scale (n,s): as triton38/gfx1250",
         "H and I multiples of 128", kTriton38Gfx1250Source, "triton_kernels 3.8"});

const Layout kTriton38Gfx1250RowInterleavedLayout =
    triton_layout<kTriton38Gfx1250RowInterleavedLayout, kTriton38Values, kTriton38Gfx1250Scales,
                  W13Weave::kRows, 128>(
        {"triton38/gfx1250-row-interleaved", kTriton38Gfx1250Outputs,
         "w13 first: row 2i+g takes row g*I+i, biases too\n"
         "value byte (n,c) and scale (n,s): as triton38/gfx1250",
         "H and I multiples of 128", kTriton38Gfx1250Source, "triton_kernels 3.8"});

const Layout kAiterW4a8Triton38StridedLayout =
    triton_layout<kAiterW4a8Triton38StridedLayout, kTriton38Values, kTriton38StridedScales,
                  W13Weave::kNone, 1, true>(
        {"aiter/w4a8-fp8-triton38-strided", kAiterW4a8Triton38StridedOutputs,
         "value byte (n,c) and scale (n,s): as triton38/strided\n"
         "input scale: maximum over the experts, NaN if any is NaN",
         "input scales present; at least one expert", kTriton38StridedSource,
         "triton_kernels 3.8"});

const Layout kAiterW4a8Triton38Cdna4Layout =
    triton_layout<kAiterW4a8Triton38Cdna4Layout, kTriton38Values, kTriton38Cdna4Scales,
                  W13Weave::kNone, 1, true>(
        {"aiter/w4a8-fp8-triton38-cdna4", kAiterW4a8Triton38Cdna4Outputs,
         "value byte (n,c) and scale (n,s): as triton38/cdna4\n"
         "input scale: maximum over the experts, NaN if any is NaN",
         "input scales present; at least one expert", kTriton38StridedSource,
         "triton_kernels 3.8"});

const Layout kAiterW4a8Triton38Gfx1250Layout =
    triton_layout<kAiterW4a8Triton38Gfx1250Layout, kTriton38Values, kTriton38Gfx1250Scales,
                  W13Weave::kNone, 128, true>(
        {"aiter/w4a8-fp8-triton38-gfx1250", kAiterW4a8Triton38Gfx1250Outputs,
         "value byte (n,c) and scale (n,s): as triton38/gfx1250\n"
         "input scale: maximum over the experts, NaN if any is NaN",
         "input scales present; at least one expert; H and I multiples of 128",
         kTriton38Gfx1250Source, "triton_kernels 3.8"});

}  // namespace mxfp4
