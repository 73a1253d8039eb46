// The layouts of triton_kernels 3.8, which vLLM's ROCm builds take: values as loaded; scales
// transposed, in CDNA4 order (gfx950), or in AITER's tiles and then transposed (gfx1250). Four
// layouts for each order of scales: gpt-oss, two ways to interleave w13 first, and AITER_MXFP4_FP8
// with input scales reduced to one.
//
// Older versions keep strided scales as loaded: there a layout is a class, here it is an object,
// and vLLM makes the one for scales with the last axis as the contiguous one. The engine's view of
// values and of cdna4 scales exchanges the last two axes, of other scales it does not.
//
// Example: scale (n, s) = (53, 13), N = 64: strided offset 13*64 + 53 = 885; gfx1250 row 469,
// column 1.
//
// Read from three versions of triton_kernels, one of them 3.8's; the commit that vLLM pins was not
// available (tests/engines/README.md).
#include "lib/core/checked.hpp"
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/input_scales.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"

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
    "aiter/ops/triton/utils/shuffle.py, shuffle_scale_moe; vLLM 0.33.0 "
    "quantization/utils/mxfp4_utils.py, _swizzle_mxfp4";
constexpr std::string_view kTriton38StridedOutputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, S, N]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kAiterTriton38StridedOutputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, S, N]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "w13_input_scale, w2_input_scale: F32 []";
constexpr std::string_view kTriton38Cdna4Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,32)/32, 32*up(S,8)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kAiterTriton38Cdna4Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,32)/32, 32*up(S,8)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "w13_input_scale, w2_input_scale: F32 []";
constexpr std::string_view kTriton38Gfx1250Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, 32*S, N/32]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded";
constexpr std::string_view kAiterTriton38Gfx1250Outputs =
    "w13_weight, w2_weight: U8 [E, N, C]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, 32*S, N/32]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "w13_input_scale, w2_input_scale: F32 []";
constexpr std::string_view kGfx1250Preconditions = "H and I multiples of 128";

using Outputs = std::vector<Output> (*)(const LayoutInput& input);

// One of the four layouts of an order of scales. They differ in these words and in how the outputs
// are made.
constexpr Layout triton_38(std::string_view id, std::string_view outputs_doc,
                           std::string_view formula, std::string_view preconditions,
                           std::string_view source, Outputs outputs) {
  return {.id = id,
          .outputs_doc = outputs_doc,
          .formula = formula,
          .preconditions = preconditions,
          .source = source,
          .kernel_library = "triton_kernels 3.8",
          .outputs = outputs};
}

// For AITER_MXFP4_FP8.
constexpr Layout triton_38_w4a8(std::string_view id, std::string_view outputs_doc,
                                std::string_view formula, std::string_view preconditions,
                                std::string_view source, Outputs outputs) {
  Layout layout = triton_38(id, outputs_doc, formula, preconditions, source, outputs);
  layout.check_data = check_input_scales;
  return layout;
}

}  // namespace

const Layout kTriton38StridedLayout =
    triton_38("triton38/strided", kTriton38StridedOutputs,
              "value byte (n,c): as loaded\n"
              "scale (n,s): row s, column n",
              "none", kTriton38Source, [](const LayoutInput& input) {
                return triton_outputs(input, kTriton38Values, kTriton38StridedScales);
              });

const Layout kTriton38StridedKInterleavedLayout =
    triton_38("triton38/strided-k-interleaved", kTriton38StridedOutputs,
              "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
              "value byte (n,c) and scale (n,s): as triton38/strided",
              "H a multiple of 64", kTriton38Source, [](const LayoutInput& input) {
                return triton_k_interleaved_outputs(kTriton38StridedKInterleavedLayout.id, input,
                                                    kTriton38Values, kTriton38StridedScales);
              });

const Layout kTriton38StridedRowInterleavedLayout = triton_38(
    "triton38/strided-row-interleaved", kTriton38StridedOutputs,
    "w13 first: row 2i+g takes row g*I+i, biases too\n"
    "value byte (n,c) and scale (n,s): as triton38/strided",
    "none", kTriton38Source, [](const LayoutInput& input) {
      return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38StridedScales);
    });

const Layout kAiterW4a8Triton38StridedLayout = triton_38_w4a8(
    "aiter/w4a8-fp8-triton38-strided", kAiterTriton38StridedOutputs,
    "value byte (n,c) and scale (n,s): as triton38/strided\n"
    "input scale: maximum over the experts, NaN if any is NaN",
    "input scales present; at least one expert", kTriton38Source, [](const LayoutInput& input) {
      return triton_38_w4a8_outputs(kAiterW4a8Triton38StridedLayout.id, input,
                                    kTriton38StridedScales);
    });

const Layout kTriton38Cdna4Layout =
    triton_38("triton38/cdna4", kTriton38Cdna4Outputs,
              "value byte (n,c): as loaded\n"
              "scale (n,s), rows and columns padded with 0: as triton/cdna4",
              "none", kTriton38Source, [](const LayoutInput& input) {
                return triton_outputs(input, kTriton38Values, kTriton38Cdna4Scales);
              });

const Layout kTriton38Cdna4KInterleavedLayout =
    triton_38("triton38/cdna4-k-interleaved", kTriton38Cdna4Outputs,
              "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
              "value byte (n,c) and scale (n,s): as triton38/cdna4",
              "H a multiple of 64", kTriton38Source, [](const LayoutInput& input) {
                return triton_k_interleaved_outputs(kTriton38Cdna4KInterleavedLayout.id, input,
                                                    kTriton38Values, kTriton38Cdna4Scales);
              });

const Layout kTriton38Cdna4RowInterleavedLayout =
    triton_38("triton38/cdna4-row-interleaved", kTriton38Cdna4Outputs,
              "w13 first: row 2i+g takes row g*I+i, biases too\n"
              "value byte (n,c) and scale (n,s): as triton38/cdna4",
              "none", kTriton38Source, [](const LayoutInput& input) {
                return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38Cdna4Scales);
              });

const Layout kAiterW4a8Triton38Cdna4Layout = triton_38_w4a8(
    "aiter/w4a8-fp8-triton38-cdna4", kAiterTriton38Cdna4Outputs,
    "value byte (n,c) and scale (n,s): as triton38/cdna4\n"
    "input scale: maximum over the experts, NaN if any is NaN",
    "input scales present; at least one expert", kTriton38Source, [](const LayoutInput& input) {
      return triton_38_w4a8_outputs(kAiterW4a8Triton38Cdna4Layout.id, input, kTriton38Cdna4Scales);
    });

const Layout kTriton38Gfx1250Layout =
    triton_38("triton38/gfx1250", kTriton38Gfx1250Outputs,
              "value byte (n,c): as loaded\n"
              "scale (n,s): row 128*(s/4) + 4*(n%32) + s%4, column n/32",
              kGfx1250Preconditions, kTriton38Gfx1250Source, [](const LayoutInput& input) {
                require_gfx1250_sizes(kTriton38Gfx1250Layout.id, input);
                return triton_outputs(input, kTriton38Values, kTriton38Gfx1250Scales);
              });

const Layout kTriton38Gfx1250KInterleavedLayout =
    triton_38("triton38/gfx1250-k-interleaved", kTriton38Gfx1250Outputs,
              "w13 first: index d of the last axis takes (d>>1) + (d&1)*(n/2)\n"
              "value byte (n,c) and scale (n,s): as triton38/gfx1250",
              kGfx1250Preconditions, kTriton38Gfx1250Source, [](const LayoutInput& input) {
                require_gfx1250_sizes(kTriton38Gfx1250KInterleavedLayout.id, input);
                return triton_k_interleaved_outputs(kTriton38Gfx1250KInterleavedLayout.id, input,
                                                    kTriton38Values, kTriton38Gfx1250Scales);
              });

const Layout kTriton38Gfx1250RowInterleavedLayout = triton_38(
    "triton38/gfx1250-row-interleaved", kTriton38Gfx1250Outputs,
    "w13 first: row 2i+g takes row g*I+i, biases too\n"
    "value byte (n,c) and scale (n,s): as triton38/gfx1250",
    kGfx1250Preconditions, kTriton38Gfx1250Source, [](const LayoutInput& input) {
      require_gfx1250_sizes(kTriton38Gfx1250RowInterleavedLayout.id, input);
      return triton_row_interleaved_outputs(input, kTriton38Values, kTriton38Gfx1250Scales);
    });

const Layout kAiterW4a8Triton38Gfx1250Layout =
    triton_38_w4a8("aiter/w4a8-fp8-triton38-gfx1250", kAiterTriton38Gfx1250Outputs,
                   "value byte (n,c) and scale (n,s): as triton38/gfx1250\n"
                   "input scale: maximum over the experts, NaN if any is NaN",
                   "input scales present; at least one expert; H and I multiples of 128",
                   kTriton38Gfx1250Source, [](const LayoutInput& input) {
                     require_gfx1250_sizes(kAiterW4a8Triton38Gfx1250Layout.id, input);
                     return triton_38_w4a8_outputs(kAiterW4a8Triton38Gfx1250Layout.id, input,
                                                   kTriton38Gfx1250Scales);
                   });

}  // namespace mxfp4
