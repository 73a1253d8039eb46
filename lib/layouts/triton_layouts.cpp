// The layouts of triton_kernels: TRITON, TRITON_UNFUSED and AITER's backends that go through it.
// Each is one way to swizzle values, one to swizzle scales (triton_swizzles.cpp), and one to
// interleave w13 first; AITER_MXFP4_FP8 also reduces each projection's input scales to one, and
// warns where they differ: 0.25, 0.5, 0.25 -> 0.5.
#include "lib/layouts/triton_layouts.hpp"

#include <fmt/format.h>

#include <string_view>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"

namespace mxfp4 {
namespace {

// Two swizzles, and what is said of them.
struct Swizzled {
  std::string_view id;
  const TritonSwizzle *value, *scale;
  std::string_view values, scales;  // the shapes of both
  std::string_view formula, source, library;
  std::string_view note{};  // a last line of the outputs
  int64_t multiple = 1;     // of H and I
};

std::string multiples_of(int64_t multiple) {
  return multiple == 1 ? "none" : fmt::format("H and I multiples of {}", multiple);
}

Layout swizzled(const Swizzled& s, W13Weave weave = W13Weave::kNone, bool input_scales = false) {
  const std::string id(s.id);
  return {.id = id,
          .outputs_doc = fmt::format("w13_weight, w2_weight: U8 {}\n"
                                     "w13_weight_scale, w2_weight_scale: U8 {}\n"
                                     "w13_bias, w2_bias: F32 [E, N], when loaded{}",
                                     s.values, s.scales, s.note),
          .formula = std::string(s.formula),
          .preconditions = multiples_of(s.multiple),
          .source = std::string(s.source),
          .kernel_library = std::string(s.library),
          .outputs = [=, value = s.value, scale = s.scale,
                      multiple = s.multiple](const LayoutInput& input) {
            return triton_outputs(id, input, {*value, *scale, weave, multiple, input_scales});
          }};
}

constexpr std::string_view kLastAxisWords = "index d of the last axis takes (d>>1) + (d&1)*(n/2)";
constexpr std::string_view kRowsWords = "row 2i+g takes row g*I+i, biases too";

// The same with w13 interleaved first.
Layout woven(Swizzled s, W13Weave weave, std::string_view source = {}) {
  const bool rows = weave == W13Weave::kRows;
  const std::string id = fmt::format("{}-{}-interleaved", s.id, rows ? "row" : "k");
  const std::string_view words = rows ? kRowsWords : kLastAxisWords;
  const std::string formula =
      s.id == "triton/strided"
          ? fmt::format("w13: {}", words)
          : fmt::format("w13 first: {}\nvalue byte (n,c) and scale (n,s): as {}", words, s.id);
  s.id = id;
  s.formula = formula;
  if (!source.empty()) s.source = source;
  Layout layout = swizzled(s, weave);
  if (!rows && s.multiple == 1) layout.preconditions = "H a multiple of 64";
  return layout;
}

// The same for AITER's kernel, with input scales behind the others.
Layout with_input_scales(Swizzled s, std::string_view id, std::string_view formula) {
  s.id = id;
  s.note = "\nw13_input_scale, w2_input_scale: F32 []";
  const std::string lines =
      fmt::format("{}\ninput scale: maximum over the experts, NaN if any is NaN", formula);
  s.formula = lines;
  Layout layout = swizzled(s, W13Weave::kNone, /*input_scales=*/true);
  layout.preconditions = "input scales present; at least one expert";
  if (s.multiple != 1) layout.preconditions += "; " + multiples_of(s.multiple);
  layout.check_data = check_input_scales;
  return layout;
}

constexpr std::string_view kSplitK = "\nkernel option to set: split_k=1";

// Capability 9.0: Hopper value and scale layouts (mma version 3, 8 warps). Value bytes move into
// 32-bit words, little-endian, and the bits of a word then mix, so that the kernel can widen codes
// without shifts. A lone byte 0xB4 at (n, c) = (13, 45) of N = 16, C = 64 gives word 53 of row 2
// the value 0x64000800; the scale (n, s) = (413, 3) goes to row 9, column 119.
constexpr Swizzled kHopper{
    "triton/hopper",
    &kHopperValues,
    &kHopperScales,
    "[E, up(N,16)/4, 4*up(C,32)]",
    "[E, up(N,256)/32, 32*up(S,2)]",
    "value byte (n,c): row 4*(n>>4) + ((n>>1)&3), word 32*(c>>5) + 16*(n&1) + 4*(c&3) + "
    "((c>>3)&3), slot 2*((c>>2)&1) + ((n>>3)&1)\n"
    "the four bytes of a word then mix: half(low nibbles) | half(high nibbles) << 16, where half "
    "puts the bits of the codes a, b, c, d of slots 0..3 as\n"
    "  bit 15  14  13  12  11  10  9   8..6  5..3  2..0\n"
    "      a.3 d.3 d.0 b.3 d.2 d.1 c.3 a.210 b.210 c.210\n"
    "scale (n,s): row 8*(n/256) + ((n>>4)&7), column 64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + 2*(s&1) "
    "+ ((n>>3)&1)",
    "triton_kernels 3.6.0 layout_details/hopper_value.py, hopper_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    "triton_kernels 3.6.0",
    kSplitK};

// The same with values first padded to multiples of 64 both ways: H = 2880 has C = 1440, padded
// 1472, so a row of w13's output has 5888 bytes.
constexpr Swizzled kHopper64{
    "triton/hopper-64",
    &kHopper64Values,
    &kHopperScales,
    "[E, up(N,64)/4, 4*up(C,64)]",
    kHopper.scales,
    "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
    "scale (n,s): as triton/hopper",
    "vLLM 0.21.0 quantization/utils/mxfp4_utils.py, _swizzle_mxfp4, and the wheel's "
    "triton_kernels, layout_details/hopper_value.py, hopper_scale.py",
    "triton_kernels in the wheel of vLLM 0.21.0",
    kSplitK};

// SGLang first pads the columns of scales to a multiple of 4 with 1.0 (0x7F), and triton_kernels
// the values to multiples of 64, or of 256 rows: with I = 2880 w13's 5760 rows become 5888, w2's
// 2880 3072.
constexpr Swizzled kHopper64Ones{
    "triton/hopper-64-ones",
    &kHopper64Values,
    &kHopperScalesByFourOnes,
    kHopper64.values,
    "[E, up(N,256)/32, 32*up(S,4)]",
    "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper",
    "SGLang 0.5.20 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
    "sglang-kernel 0.4.7, layout_details/hopper_value.py, hopper_scale.py",
    "triton_kernels in sglang-kernel 0.4.7",
    kSplitK};
constexpr Swizzled kHopper256Ones{
    "triton/hopper-256-ones",
    &kHopper256Values,
    &kHopperScalesByFourOnes,
    "[E, up(N,256)/4, 4*up(C,64)]",
    kHopper64Ones.scales,
    "value byte (n,c), rows padded to a multiple of 256 and columns of 64 with 0: as "
    "triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper",
    "SGLang 0.5.23 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
    "sglang-kernel 0.4.10, layout_details/hopper_value.py, hopper_scale.py",
    "triton_kernels in sglang-kernel 0.4.10",
    kSplitK};

// Scale columns padded to a multiple of 4, so that the kernel's reads of four groups at a time end
// inside the tensor: H = 2880 has S = 90, padded 92.
constexpr Swizzled kHopperS4{
    "triton/hopper-s4",
    &kHopperValues,
    &kHopperScalesByFour,
    kHopper.values,
    kHopper64Ones.scales,
    "value byte (n,c): as triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0: row 8*(n/256) + ((n>>4)&7), "
    "column 64*(s>>1) + 32*((n>>7)&1) + 4*(n&7) + 2*(s&1) + ((n>>3)&1)",
    "triton_kernels 3.5.1 layout_details/hopper_value.py, hopper_scale.py; vLLM 017e9f4448 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    "triton_kernels 3.5.1",
    kSplitK};

// Capability 10.0 and above: values keep their place in rows padded to a multiple of 256 codes;
// scales are in 128 x 4 tiles. N = 128, S = 8, scale (n, s) = (37, 5) -> 597.
constexpr Swizzled kBlackwell{
    "triton/blackwell",
    &kBlackwellValues,
    &kBlackwellScales,
    "[E, N, up(C,128)]",
    "[1, E*up(N,128)/128, up(S,8)/4, 2, 256]",
    "value byte (n,c): row n, column c\n"
    "scale (n,s): offset (((n>>7)*up(S,8)/4 + (s>>2)) << 9) + ((n&31) << 4) + (((n>>5)&3) << "
    "2) + (s&3)",
    "triton_kernels 3.6.0 layout_details/blackwell_value.py, blackwell_scale.py; vLLM a2c8fc6657 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    "triton_kernels 3.6.0",
    "\nkernel options to set on capability 10.x: is_persistent=true, epilogue_subtile=1"};

// gfx950: values as loaded, scales in CDNA4 order, which older packages call GFX950MXScaleLayout.
// The reference scrambles sizes that are not multiples of 256, and does not check. Scale (n, s) =
// (53, 13) -> row 1, column 343.
constexpr Swizzled kCdna4{
    .id = "triton/cdna4",
    .value = &kStrided,
    .scale = &kCdna4Scales,
    .values = "[E, N, C]",
    .scales = "[E, N/32, 32*S]",
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): row n>>5, column 256*(s>>3) + 64*(s&3) + 4*(n&15) + 2*((s>>2)&1) + "
        "((n>>4)&1)",
    .source =
        "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
        "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    .library = "triton_kernels 3.6.0",
    .multiple = 256};

// Where no swizzle exists (CUDA below 9.0, ROCm other than gfx950, XPU): as loaded. The engine's
// view is [E, C, N] with strides (N C, 1, C). Row-interleaved, the rows 0 1 2 3 of w13 (I = 2:
// gate, gate, up, up) become 0 2 1 3.
constexpr Swizzled kAsLoaded{"triton/strided",
                             &kStrided,
                             &kStrided,
                             "[E, N, C]",
                             "[E, N, S]",
                             "values and scales as loaded",
                             "triton_kernels 3.6.0 layout_details/strided.py; vLLM a2c8fc6657 "
                             "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
                             "triton_kernels 3.6.0"};

// triton_kernels 3.8, which vLLM's ROCm builds take: values as loaded; scales transposed, in CDNA4
// order (gfx950), or in AITER's tiles and then transposed (gfx1250). Older versions keep strided
// scales as loaded: there a layout is a class, here it is an object, and vLLM makes the one for
// scales with the last axis as the contiguous one. Scale (n, s) = (53, 13), N = 64: strided offset
// 13*64 + 53 = 885; gfx1250 row 469, column 1. Read from three versions of triton_kernels, one of
// them 3.8's; the commit that vLLM pins was not available (tests/engines/README.md).
constexpr Swizzled kStrided38{
    "triton38/strided",
    &kTriton38Values,
    &kTriton38StridedScales,
    "[E, N, C]",
    "[E, S, N]",
    "value byte (n,c): as loaded\n"
    "scale (n,s): row s, column n",
    "triton_kernels 3.8 layout_details/strided.py, cdna4_scale.py; vLLM 0.31.0 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    "triton_kernels 3.8"};
constexpr Swizzled kCdna438{"triton38/cdna4",
                            &kTriton38Values,
                            &kTriton38Cdna4Scales,
                            "[E, N, C]",
                            "[E, up(N,32)/32, 32*up(S,8)]",
                            "value byte (n,c): as loaded\n"
                            "scale (n,s), rows and columns padded with 0: as triton/cdna4",
                            kStrided38.source,
                            kStrided38.library};
constexpr Swizzled kGfx125038{
    .id = "triton38/gfx1250",
    .value = &kTriton38Values,
    .scale = &kTriton38Gfx1250Scales,
    .values = "[E, N, C]",
    .scales = "[E, 32*S, N/32]",
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): row 128*(s/4) + 4*(n%32) + s%4, column n/32",
    .source =
        "triton_kernels 3.8 layout_details/strided.py; ROCm/aiter 73d928d61b9b "
        "aiter/ops/triton/utils/shuffle.py, shuffle_scale_moe; vLLM 0.33.0 "
        "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4",
    .library = kStrided38.library,
    .multiple = 128};

constexpr W13Weave kByK = W13Weave::kLastAxis, kByRows = W13Weave::kRows;

// A variant's own source, or library, in place of the family's.
constexpr Swizzled sourced(Swizzled s, std::string_view source) {
  s.source = source;
  return s;
}
constexpr Swizzled of_any_library(Swizzled s) {
  s.library = "";
  return s;
}

}  // namespace

const Layout kTritonHopperLayout = swizzled(kHopper);
const Layout kTritonHopperKInterleavedLayout = woven(kHopper, kByK);
const Layout kTritonHopper64Layout = swizzled(kHopper64);
const Layout kTritonHopper64KInterleavedLayout = woven(kHopper64, kByK);
const Layout kTritonHopper64OnesLayout = swizzled(kHopper64Ones);
const Layout kTritonHopper256OnesLayout = swizzled(kHopper256Ones);
const Layout kTritonHopperS4Layout = swizzled(kHopperS4);
const Layout kTritonHopperS4KInterleavedLayout = woven(kHopperS4, kByK);
const Layout kTritonBlackwellLayout = swizzled(kBlackwell);
const Layout kTritonBlackwellKInterleavedLayout = woven(kBlackwell, kByK);
const Layout kTritonCdna4Layout = swizzled(kCdna4);
const Layout kTritonCdna4KInterleavedLayout = woven(kCdna4, kByK);
const Layout kTritonCdna4RowInterleavedLayout =
    woven(kCdna4, kByRows,
          "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM 0.30.0 "
          "fused_moe/oracle/mxfp4.py");
const Layout kTritonStridedLayout = swizzled(kAsLoaded);
const Layout kTritonStridedKInterleavedLayout = woven(kAsLoaded, kByK);
const Layout kTritonStridedRowInterleavedLayout =
    woven(kAsLoaded, kByRows,
          "triton_kernels 3.6.0 layout_details/strided.py; vLLM 0.30.0 fused_moe/oracle/mxfp4.py");

const Layout kTriton38StridedLayout = swizzled(kStrided38);
const Layout kTriton38StridedKInterleavedLayout = woven(kStrided38, kByK);
const Layout kTriton38StridedRowInterleavedLayout = woven(kStrided38, kByRows);
const Layout kTriton38Cdna4Layout = swizzled(kCdna438);
const Layout kTriton38Cdna4KInterleavedLayout = woven(kCdna438, kByK);
const Layout kTriton38Cdna4RowInterleavedLayout = woven(kCdna438, kByRows);
const Layout kTriton38Gfx1250Layout = swizzled(kGfx125038);
const Layout kTriton38Gfx1250KInterleavedLayout = woven(kGfx125038, kByK);
const Layout kTriton38Gfx1250RowInterleavedLayout = woven(kGfx125038, kByRows);

const Layout kAiterW4a8Fp8Layout = with_input_scales(
    sourced(kCdna4,
            "triton_kernels 3.6.0 layout_details/strided.py, cdna4_scale.py; vLLM a2c8fc6657 "
            "fused_moe/oracle/mxfp4.py"),
    "aiter/w4a8-fp8", "value byte (n,c): as loaded\nscale (n,s): as triton/cdna4");
const Layout kAiterW4a8Fp8StridedLayout = with_input_scales(
    of_any_library(
        sourced(kAsLoaded,
                "triton_kernels layout_details/strided.py; vLLM 017e9f4448 "
                "fused_moe/oracle/mxfp4.py, quantization/utils/mxfp4_utils.py, _swizzle_mxfp4")),
    "aiter/w4a8-fp8-strided", kAsLoaded.formula);
const Layout kAiterW4a8Triton38StridedLayout =
    with_input_scales(kStrided38, "aiter/w4a8-fp8-triton38-strided",
                      "value byte (n,c) and scale (n,s): as triton38/strided");
const Layout kAiterW4a8Triton38Cdna4Layout =
    with_input_scales(kCdna438, "aiter/w4a8-fp8-triton38-cdna4",
                      "value byte (n,c) and scale (n,s): as triton38/cdna4");
const Layout kAiterW4a8Triton38Gfx1250Layout =
    with_input_scales(kGfx125038, "aiter/w4a8-fp8-triton38-gfx1250",
                      "value byte (n,c) and scale (n,s): as triton38/gfx1250");

}  // namespace mxfp4
