// The layouts of triton_kernels 3.8, which vLLM's ROCm builds take: values as loaded; scales
// transposed, in CDNA4 order (gfx950), or in AITER's tiles and then transposed (gfx1250).
//
//   w13_weight, w2_weight              U8 [E, N, C]                    as loaded
//   w13_weight_scale, w2_weight_scale  U8 [E, S, N]                    strided
//                                      U8 [E, Np/32, 32 Sp]            cdna4
//                                      U8 [E, 32 S, N/32]              gfx1250
//   w13_bias, w2_bias                  F32 [E, 2I], [E, H]             optional
//   w13_input_scale, w2_input_scale    F32 []                          AITER_MXFP4_FP8 alone
//
// w13: N = 2I, C = H/2, S = H/32; w2: N = H, C = I/2, S = I/32. Np = up(N, 32), Sp = up(S, 8);
// padding bytes are 0. Scale (n, s) goes to
//   strided   row s, column n
//   cdna4     as triton/cdna4
//   gfx1250   row 128(s / 4) + 4(n % 32) + s % 4, column n / 32
// Older versions keep strided scales as loaded: there a layout is a class, here it is an object, and
// vLLM makes the one for scales with the last axis as the contiguous one.
// Example: (n, s) = (53, 13), N = 64: strided offset 13*64 + 53 = 885; gfx1250 row 469, column 1.
// The engine's view of values and of cdna4 scales exchanges the last two axes, of other scales it
// does not.
//
// Preconditions: k-interleaved: H % 64 == 0; gfx1250: H and I multiples of 128; AITER_MXFP4_FP8:
// input scales present, at least one expert.
// Source: vLLM 0.31.0 (0.33.0 for gfx1250) quantization/utils/mxfp4_utils.py, _swizzle_mxfp4;
// triton_kernels layout_details/strided.py and cdna4_scale.py of three versions, one of them 3.8's; the
// commit that vLLM pins was not at hand (tests/engines/README.md). ROCm/aiter 73d928d61b9b,
// shuffle_scale_moe.
#include "lib/core/checked.hpp"
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/all.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/triton_common.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kGfx1250TileRows = 32;
constexpr int64_t kGfx1250TileColumns = 4;

Shape append_transposed_scales(Program& program, const TritonMatrix& m) {
  program.then(Permute{Unit::kByte, {m.rows, m.columns}, {1, 0}});
  return {m.experts, m.columns, m.rows};
}

Shape append_padded_cdna4(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, 32);
  const int64_t columns = round_up(m.columns, 8);
  append_padding(program, m, rows, columns);
  program.then(cdna4_scale_tiles(rows, columns, RowPairs::kKept));
  return {m.experts, rows / 32, checked_mul(32, columns)};
}

Shape append_gfx1250_tiles(Program& program, const TritonMatrix& m) {
  program.then(Permute{Unit::kByte,
                       {m.rows / kGfx1250TileRows, kGfx1250TileRows,
                        m.columns / kGfx1250TileColumns, kGfx1250TileColumns},
                       {2, 1, 3, 0}});
  return {m.experts, checked_mul(kGfx1250TileRows, m.columns), m.rows / kGfx1250TileRows};
}

Shape append_triton_38_values(Program&, const TritonMatrix& m) {
  return {m.experts, m.rows, m.columns};
}

// vLLM counts the contiguous axis from the end.
const TritonSwizzle kTriton38Values = {.layout = "StridedLayout",
                                       .layout_name = "STRIDED",
                                       .kwargs = {{"major_dim", 1}},
                                       .append = append_triton_38_values,
                                       .slack_bytes = nullptr,
                                       .from_shape = false};
const TritonSwizzle kTriton38StridedScales = {.layout = "StridedLayout",
                                              .layout_name = "STRIDED",
                                              .kwargs = {{"major_dim", 2}},
                                              .append = append_transposed_scales,
                                              .slack_bytes = nullptr,
                                              .from_shape = false,
                                              .view = TritonView::kAsStored};
const TritonSwizzle kTriton38Cdna4Scales = {.layout = "CDNA4MXScaleLayout",
                                            .layout_name = "CDNA4_SCALE",
                                            .kwargs = {},
                                            .append = append_padded_cdna4,
                                            .slack_bytes = nullptr,
                                            .from_shape = false};
// AITER's tiles are what the layout is asked for.
const TritonSwizzle kTriton38Gfx1250Scales = {.layout = "StridedLayout",
                                              .layout_name = "STRIDED",
                                              .kwargs = {{"major_dim", 2}},
                                              .append = append_gfx1250_tiles,
                                              .slack_bytes = nullptr,
                                              .from_shape = false,
                                              .view = TritonView::kWrappedAsStored};

void require_gfx1250_sizes(std::string_view id, const LayoutInput& input) {
  constexpr int64_t kMultiple = kGfx1250TileColumns * kBlock;
  require_multiple(id, "hidden size", input.loaded.dims.hidden_size, kMultiple);
  require_multiple(id, "intermediate size", input.loaded.dims.intermediate_size, kMultiple);
}

// For AITER_MXFP4_FP8.
std::vector<Output> triton_38_w4a8_outputs(std::string_view id, const LayoutInput& input,
                                           const TritonSwizzle& scales) {
  require_input_scales(input.loaded);
  std::vector<Output> result = triton_outputs(input, kTriton38Values, scales);
  append_input_scale_maxima(id, input.loaded, result);
  return result;
}

constexpr std::string_view kTriton38Source =
    "triton_kernels 3.8 layout_details/strided.py, cdna4_scale.py; vLLM 0.31.0 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTriton38Gfx1250Source =
    "triton_kernels 3.8 layout_details/strided.py; ROCm/aiter 73d928d61b9b "
    "aiter/ops/triton/utils/shuffle.py; vLLM 0.33.0 quantization/utils/mxfp4_utils.py, "
    "_swizzle_mxfp4";
constexpr std::string_view kTriton38Library = "triton_kernels 3.8";
constexpr std::string_view kGfx1250Preconditions = "H and I multiples of 128";
constexpr std::string_view kW4a8Preconditions = "input scales present; at least one expert";

constexpr std::string_view kTriton38StridedOutputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, S, N]\n"
    "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded";
constexpr std::string_view kTriton38Cdna4Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,32)/32, 32*up(S,8)]\n"
    "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded";
constexpr std::string_view kTriton38Gfx1250Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, 32*S, N/32]\n"
    "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded";

}  // namespace

const Layout kTriton38StridedLayout = {
    .id = "triton38/strided",
    .backends =
        "TRITON (gpt_oss), TRITON_UNFUSED, AITER_TRITON_MXFP4_BF16 (gpt_oss), on ROCm from "
        "vLLM 0.31.0 on where scales have no order of their own; AITER_MXFP4_BF16 "
        "(generic) on gfx1250",
    .outputs_doc = kTriton38StridedOutputs,
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): row s, column n",
    .preconditions = "none",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_outputs(input, kTriton38Values, kTriton38StridedScales);
        },
    .check_data = nullptr,
};

const Layout kTriton38StridedKInterleavedLayout = {
    .id = "triton38/strided-k-interleaved",
    .backends =
        "TRITON (generic), on ROCm from vLLM 0.31.0 on where scales have no order of their "
        "own",
    .outputs_doc = kTriton38StridedOutputs,
    .formula =
        "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
        "value byte (n,c) and scale (n,s): as triton38/strided",
    .preconditions = "H a multiple of 64",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_k_interleaved_outputs(kTriton38StridedKInterleavedLayout.id, input,
                                              kTriton38Values, kTriton38StridedScales);
        },
    .check_data = nullptr,
};

const Layout kTriton38StridedRowInterleavedLayout = {
    .id = "triton38/strided-row-interleaved",
    .backends =
        "AITER_TRITON_MXFP4_BF16 (generic), on ROCm from vLLM 0.31.0 on where scales have "
        "no order of their own",
    .outputs_doc = kTriton38StridedOutputs,
    .formula =
        "w13 first: row 2i+g takes row g*I+i, biases too\n"
        "value byte (n,c) and scale (n,s): as triton38/strided",
    .preconditions = "none",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38StridedScales);
        },
    .check_data = nullptr,
};

const Layout kAiterW4a8Triton38StridedLayout = {
    .id = "aiter/w4a8-fp8-triton38-strided",
    .backends =
        "AITER_MXFP4_FP8, on ROCm from vLLM 0.31.0 on where scales have no order of their "
        "own",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, S, N]\n"
        "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded\n"
        "w13_input_scale, w2_input_scale: F32 []",
    .formula =
        "value byte (n,c) and scale (n,s): as triton38/strided\n"
        "input scale: maximum over the experts",
    .preconditions = kW4a8Preconditions,
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_38_w4a8_outputs(kAiterW4a8Triton38StridedLayout.id, input,
                                        kTriton38StridedScales);
        },
    .check_data = check_input_scales,
};

const Layout kTriton38Cdna4Layout = {
    .id = "triton38/cdna4",
    .backends =
        "TRITON (gpt_oss), TRITON_UNFUSED, AITER_TRITON_MXFP4_BF16 (gpt_oss), on gfx950 "
        "from vLLM 0.31.0 on, world size up to 2",
    .outputs_doc = kTriton38Cdna4Outputs,
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): row n>>5, column 256*(s>>3) + 64*(s&3) + 4*(n&15) + 2*((s>>2)&1) + "
        "((n>>4)&1)",
    .preconditions = "none",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_outputs(input, kTriton38Values, kTriton38Cdna4Scales);
        },
    .check_data = nullptr,
};

const Layout kTriton38Cdna4KInterleavedLayout = {
    .id = "triton38/cdna4-k-interleaved",
    .backends = "TRITON (generic), on gfx950 from vLLM 0.31.0 on, world size up to 2",
    .outputs_doc = kTriton38Cdna4Outputs,
    .formula =
        "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
        "value byte (n,c) and scale (n,s): as triton38/cdna4",
    .preconditions = "H a multiple of 64",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_k_interleaved_outputs(kTriton38Cdna4KInterleavedLayout.id, input,
                                              kTriton38Values, kTriton38Cdna4Scales);
        },
    .check_data = nullptr,
};

const Layout kTriton38Cdna4RowInterleavedLayout = {
    .id = "triton38/cdna4-row-interleaved",
    .backends =
        "AITER_TRITON_MXFP4_BF16 (generic), on gfx950 from vLLM 0.31.0 on, world size up "
        "to 2",
    .outputs_doc = kTriton38Cdna4Outputs,
    .formula =
        "w13 first: row 2i+g takes row g*I+i, biases too\n"
        "value byte (n,c) and scale (n,s): as triton38/cdna4",
    .preconditions = "none",
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38Cdna4Scales);
        },
    .check_data = nullptr,
};

const Layout kAiterW4a8Triton38Cdna4Layout = {
    .id = "aiter/w4a8-fp8-triton38-cdna4",
    .backends = "AITER_MXFP4_FP8, on gfx950 from vLLM 0.31.0 on, world size up to 2",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, up(N,32)/32, 32*up(S,8)]\n"
        "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded\n"
        "w13_input_scale, w2_input_scale: F32 []",
    .formula =
        "value byte (n,c) and scale (n,s): as triton38/cdna4\n"
        "input scale: maximum over the experts",
    .preconditions = kW4a8Preconditions,
    .source = kTriton38Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          return triton_38_w4a8_outputs(kAiterW4a8Triton38Cdna4Layout.id, input,
                                        kTriton38Cdna4Scales);
        },
    .check_data = check_input_scales,
};

const Layout kTriton38Gfx1250Layout = {
    .id = "triton38/gfx1250",
    .backends =
        "TRITON (gpt_oss), TRITON_UNFUSED, AITER_TRITON_MXFP4_BF16 (gpt_oss), on gfx1250 "
        "from vLLM 0.33.0 on; AITER_MXFP4_BF16 (generic)",
    .outputs_doc = kTriton38Gfx1250Outputs,
    .formula =
        "value byte (n,c): as loaded\n"
        "scale (n,s): row 128*(s/4) + 4*(n%32) + s%4, column n/32",
    .preconditions = kGfx1250Preconditions,
    .source = kTriton38Gfx1250Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          require_gfx1250_sizes(kTriton38Gfx1250Layout.id, input);
          return triton_outputs(input, kTriton38Values, kTriton38Gfx1250Scales);
        },
    .check_data = nullptr,
};

const Layout kTriton38Gfx1250KInterleavedLayout = {
    .id = "triton38/gfx1250-k-interleaved",
    .backends = "TRITON (generic), on gfx1250 from vLLM 0.33.0 on",
    .outputs_doc = kTriton38Gfx1250Outputs,
    .formula =
        "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
        "value byte (n,c) and scale (n,s): as triton38/gfx1250",
    .preconditions = kGfx1250Preconditions,
    .source = kTriton38Gfx1250Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          require_gfx1250_sizes(kTriton38Gfx1250KInterleavedLayout.id, input);
          return triton_k_interleaved_outputs(kTriton38Gfx1250KInterleavedLayout.id, input,
                                              kTriton38Values, kTriton38Gfx1250Scales);
        },
    .check_data = nullptr,
};

const Layout kTriton38Gfx1250RowInterleavedLayout = {
    .id = "triton38/gfx1250-row-interleaved",
    .backends = "AITER_TRITON_MXFP4_BF16 (generic), on gfx1250 from vLLM 0.33.0 on",
    .outputs_doc = kTriton38Gfx1250Outputs,
    .formula =
        "w13 first: row 2i+g takes row g*I+i, biases too\n"
        "value byte (n,c) and scale (n,s): as triton38/gfx1250",
    .preconditions = kGfx1250Preconditions,
    .source = kTriton38Gfx1250Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          require_gfx1250_sizes(kTriton38Gfx1250RowInterleavedLayout.id, input);
          return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38Gfx1250Scales);
        },
    .check_data = nullptr,
};

const Layout kAiterW4a8Triton38Gfx1250Layout = {
    .id = "aiter/w4a8-fp8-triton38-gfx1250",
    .backends = "AITER_MXFP4_FP8, on gfx1250 from vLLM 0.33.0 on",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, 32*S, N/32]\n"
        "w13_bias, w2_bias: F32 [E, 2I], [E, H], when loaded\n"
        "w13_input_scale, w2_input_scale: F32 []",
    .formula =
        "value byte (n,c) and scale (n,s): as triton38/gfx1250\n"
        "input scale: maximum over the experts",
    .preconditions = "input scales present; at least one expert; H and I multiples of 128",
    .source = kTriton38Gfx1250Source,
    .kernel_library = kTriton38Library,
    .outputs =
        [](const LayoutInput& input) {
          require_gfx1250_sizes(kAiterW4a8Triton38Gfx1250Layout.id, input);
          return triton_38_w4a8_outputs(kAiterW4a8Triton38Gfx1250Layout.id, input,
                                        kTriton38Gfx1250Scales);
        },
    .check_data = check_input_scales,
};

}  // namespace mxfp4
