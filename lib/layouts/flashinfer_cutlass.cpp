// FLASHINFER_CUTLASS_MXFP4_*: w13's rows become all up, then all gate; then weights and scales are
// interleaved for capability 9.0, or scales tiled for 10.x and 12.x. A row order, a way for weights
// and one for scales make a layout:
//
//   cutlass-mxfp8         10.x and 12.x: weights as they are, scales in the 128 x 4 tile order of
//                         block_scale_swizzle.hpp. I = 128: w13 row 0 is loaded row 1 (up 0), row 128
//                         loaded row 0 (gate 0); its scale column 5 goes to byte ((128/128)*(S/4) +
//                         1)*512 + 1 of the expert
//   cutlass-sm90          9.0: an output byte joins the same element of two rows 8 apart. Row 9,
//                         element 21 (10101 in binary) goes to row 9 (bit 3 = k[4] = 1), nibble
//                         column 16*1 + 8*0 + 4*0 + 2*1 + 1 = 19, the high nibble of byte 9
//   cutlass-sm90-scales   9.0 before flashinfer interleaved weights: those in row order. H = 256 has
//                         8 scales a row; the scale (r, c) = (3, 6) goes to (1, 14)
//   cutlass-sm90-folded   9.0 with flashinfer 0.6.18 and later: by words, with folded scales. A lone
//                         byte 0xB4 at (r, c) = (9, 45) goes to row 9 (bit 3 = c[3] = 1), word 8 + 0 +
//                         1 = 9, slot 3, and gives the word the value 0x64000800. Scale (85, 6) goes
//                         to [1, 1, 5, 6]
//   ...-halves            of a w13 that is loaded as gate and up halves: they change places. I = 128:
//                         row 5 is loaded row 133
//
// Of gate/up pairs w13_bias passes through float32 and back, which turns every NaN into 0x7FFF. An
// F32 bias is rounded to nearest even.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "lib/core/dtype.hpp"
#include "lib/core/float_bits.hpp"
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/element_map.hpp"
#include "lib/steps/float_recodings.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

const Recoding kCanonicalNanBf16 = {
    "bf16, NaN = 7FFF",
    2,
    2,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint16_t>(in, out,
                                       [](uint16_t v) { return bf16_from_f32(f32_from_bf16(v)); });
    },
    [](ConstBytes in, MutableBytes out) { std::memcpy(out.data(), in.data(), in.size()); },
};

enum class W13 : uint8_t { kPairs, kHalves };

// The loaded rows of one expert in the kernels' order.
Program ordered_rows(const LoadedSpec& loaded, Slot slot, W13 w13) {
  const auto [rows, row_bytes] = loaded.expert(slot);
  Program program(rows * row_bytes);
  if (!slot_is_w13(slot)) return program;
  return program.then(
      GatherRows{row_bytes, w13 == W13::kPairs ? up_half_gate_half(rows) : swapped_halves(rows)});
}

// Makes a slot's output of its loaded rows, which `rows` has put in order.
using CutlassOutput = Output (*)(const LoadedSpec& loaded, Slot slot, Program rows);

Output rows_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(rows));
}

Output tiled_scales(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, columns] = loaded.expert(slot);
  return rows_output(loaded, slot, std::move(swizzle_128x4(rows, count, columns)));
}

Output sm90_weights(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, row_bytes] = loaded.expert(slot);
  // Axes: r/16, r[3], r%8, k/64, k[5], k[4], k[3], k[2], k[1], k[0].
  rows.then(Permute{Unit::kNibble,
                    {count / 16, 2, 8, row_bytes * kCodesPerByte / 64, 2, 2, 2, 2, 2, 2},
                    {0, 5, 2, 3, 4, 7, 8, 6, 9, 1}});
  return rows_output(loaded, slot, std::move(rows));
}

Output sm90_scales(const LoadedSpec& loaded, Slot slot, Program rows) {
  constexpr int64_t kGroup = 4;
  const auto [count, columns] = loaded.expert(slot);
  const int64_t groups = columns / kGroup;
  rows.then(Permute{Unit::kByte, {count, groups, kGroup}, {1, 0, 2}});
  return slot_output(loaded, slot, {DType::kU8, {loaded.dims.num_experts, groups, count * kGroup}},
                     std::move(rows));
}

Output folded_weights(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, row_bytes] = loaded.expert(slot);
  rows.then(hopper_rows_step(count, row_bytes));
  return rows_output(loaded, slot, std::move(rows));
}

// Blocks of 64 rows and 4 columns, four rows of a block side by side.
Output folded_scales(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, columns] = loaded.expert(slot);
  const int64_t blocks = count / 64;
  const int64_t across = columns / 4;
  rows.then(Permute{Unit::kByte, {blocks, 4, 16, across, 4}, {0, 3, 2, 1, 4}});
  return slot_output(loaded, slot, {DType::kU8, {loaded.dims.num_experts, blocks, across, 16, 16}},
                     std::move(rows));
}

Output bias_output(const LoadedSpec& loaded, Slot slot, W13 w13) {
  if (w13 == W13::kPairs && !slot_is_w13(slot)) return identity_output(loaded, slot);
  TensorSpec spec = loaded.tensor(slot);
  const bool rounds = spec.dtype == DType::kF32;
  spec.dtype = DType::kBF16;
  Program program = ordered_rows(loaded, slot, w13);
  if (rounds || w13 == W13::kPairs) {
    program.then(Recode{rounds ? &kF32ToBf16 : &kCanonicalNanBf16, loaded.expert(slot).rows});
  }
  Output output = slot_output(loaded, slot, spec, std::move(program));
  if (w13 == W13::kPairs) {
    output.lost = rounds ? "low bits of w13_bias, rounded from F32 to BF16"
                         : "NaN payloads and signs of w13_bias";
  } else if (rounds) {
    output.lost = "low bits of the bias, rounded from F32 to BF16";
  }
  return output;
}

// A way for weights, one for scales, and what is said of them.
struct CutlassParts {
  CutlassOutput weight, scale;
  const char* scales;   // their shape
  const char* formula;  // behind w13's rows
};
constexpr CutlassParts kMxfp8{
    rows_output, tiled_scales, "[E, N, S]",
    "scale (r,c): offset ((r/128)*(S/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4"};
constexpr CutlassParts kSm90{
    sm90_weights, sm90_scales, "[E, K/128, 4N]",
    "code (r,k): row r - r%16 + 8*k[4] + r%8, column k - k%64 + 32*k[5] + 16*k[2] + 8*k[1] + "
    "4*k[3] + 2*k[0] + r[3]\n"
    "scale (r,c): (c/4, 4r + c%4)"};
constexpr CutlassParts kSm90Scales{rows_output, sm90_scales, kSm90.scales,
                                   "scale (r,c): (c/4, 4r + c%4)"};
constexpr CutlassParts kFolded{
    folded_weights, folded_scales, "[E, N/64, K/128, 16, 16]",
    "weight byte (r,c): row r - r%16 + 8*c[3] + r%8, word 8*(c/32) + 4*c[4] + c%4, slot 2*c[2] "
    "+ r[3]\n"
    "mix: as triton/hopper\n"
    "scale (r,c): (r/64, c/4, r%16, 4*((r%64)/16) + c%4)"};

Layout cutlass(const char* id, W13 w13, const CutlassParts& parts, const char* source,
               const char* library = "") {
  const bool pairs = w13 == W13::kPairs;
  const bool as_folded = !pairs && parts.weight == folded_weights;
  const auto outputs = [=](const LayoutInput& input) {
    const LoadedSpec& loaded = input.loaded;
    require_flashinfer_sizes(id, loaded.dims);
    if (pairs) require_biases(id, loaded);
    std::vector<Output> result;
    for (const Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
      result.push_back(parts.weight(loaded, slot, ordered_rows(loaded, slot, w13)));
    }
    for (const Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
      result.push_back(parts.scale(loaded, slot, ordered_rows(loaded, slot, w13)));
    }
    for (const Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
      if (loaded.has(slot)) result.push_back(bias_output(loaded, slot, w13));
    }
    return result;
  };
  return {.id = id,
          .outputs_doc = fmt::format("w13_weight, w2_weight: U8 [E, N, C]\n"
                                     "w13_weight_scale, w2_weight_scale: U8 {}\n"
                                     "w13_bias, w2_bias: BF16 [E, N]{}",
                                     parts.scales, pairs ? "" : ", when loaded"),
          .formula = fmt::format(
              "w13 row {} -> (1-g)*I + i\n{}{}", pairs ? "2i+g" : "g*I+i",
              as_folded ? "weight byte (r,c) and scale (r,c): as flashinfer/cutlass-sm90-folded"
                        : parts.formula,
              pairs ? "\nw13_bias: a NaN becomes 0x7FFF, F32 is rounded" : ""),
          .preconditions = fmt::format("H % 128 == 0, I % 128 == 0{}",
                                       pairs ? "; both biases; gpt_oss family" : ""),
          .source = source,
          .kernel_library = library,
          .outputs = outputs};
}

}  // namespace

Program folded_weight_definition(int64_t rows, int64_t columns) {
  Program program(rows * columns);
  program.then(hopper_rows_bytes(rows, columns));
  program.then(Recode{&kHopperMix, rows * columns / 4});
  return program;
}

const Layout kFlashinferCutlassMxfp8Layout =
    cutlass("flashinfer/cutlass-mxfp8", W13::kPairs, kMxfp8,
            "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
            "quantization/fp4_quantization.py, quantization.cu (block_scale_interleave_kernel)");
const Layout kFlashinferCutlassSm90Layout =
    cutlass("flashinfer/cutlass-sm90", W13::kPairs, kSm90,
            "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
            "fused_moe/core.py (interleave_moe_{weights,scales}_for_sm90_mixed_gemm), "
            "moe_gemm_mixed_utils.cu",
            "flashinfer 0.6.11.post2");
const Layout kFlashinferCutlassSm90ScalesLayout =
    cutlass("flashinfer/cutlass-sm90-scales", W13::kPairs, kSm90Scales,
            "vLLM 0.21.0 fused_moe/oracle/mxfp4.py, gpt_oss converter");
const Layout kFlashinferCutlassSm90FoldedLayout =
    cutlass("flashinfer/cutlass-sm90-folded", W13::kPairs, kFolded,
            "vLLM 0.29.0 fused_moe/oracle/mxfp4.py; flashinfer 0.6.18 fused_moe/prepare.py "
            "(interleave_moe_{weights,scales}_for_sm90_mixed_gemm), moe_gemm_mixed_utils.cu",
            "flashinfer 0.6.18");
const Layout kFlashinferCutlassMxfp8HalvesLayout =
    cutlass("flashinfer/cutlass-mxfp8-halves", W13::kHalves, kMxfp8,
            "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; flashinfer 0.6.16.post3 "
            "quantization/fp4_quantization.py, quantization.cu");
const Layout kFlashinferCutlassSm90HalvesLayout =
    cutlass("flashinfer/cutlass-sm90-halves", W13::kHalves, kSm90,
            "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; flashinfer 0.6.16.post3 fused_moe/core.py, "
            "moe_gemm_mixed_utils.cu",
            "flashinfer 0.6.16.post3");
const Layout kFlashinferCutlassSm90FoldedHalvesLayout =
    cutlass("flashinfer/cutlass-sm90-folded-halves", W13::kHalves, kFolded,
            "vLLM 0.29.0 fused_moe/oracle/mxfp4.py; flashinfer 0.6.18 fused_moe/prepare.py, "
            "moe_gemm_mixed_utils.cu",
            "flashinfer 0.6.18");

}  // namespace mxfp4
