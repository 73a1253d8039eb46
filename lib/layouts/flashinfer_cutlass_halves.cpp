// FLASHINFER_CUTLASS_* of a w13 that is loaded as gate and up halves: the halves change places, and
// then everything is as in flashinfer/cutlass-sm90 or, from flashinfer 0.6.18 on,
// flashinfer/cutlass-sm90-folded (capability 9.0), and flashinfer/cutlass-mxfp8 (10.x and 12.x).
// Biases stay BF16: copied, NaN payloads too; an F32 bias is rounded to nearest even.
//
// Example, I = 128: row 5 is loaded row 133.
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/flashinfer_cutlass_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/float_recodings.hpp"

namespace mxfp4 {
namespace {

Program swapped_rows(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, row_bytes] = loaded.expert(slot);
  Program program(rows * row_bytes);
  if (slot_is_w13(slot)) program.then(GatherRows{row_bytes, swapped_halves(rows)});
  return program;
}

Output cutlass_halves_bias_output(const LoadedSpec& loaded, Slot slot) {
  TensorSpec spec = loaded.tensor(slot);
  Program program = swapped_rows(loaded, slot);
  const bool rounds = spec.dtype == DType::kF32;
  if (rounds) program.then(Recode{&kF32ToBf16, loaded.expert(slot).rows});
  spec.dtype = DType::kBF16;
  Output output = slot_output(loaded, slot, spec, std::move(program));
  if (rounds) output.lost = "low bits of the bias, rounded from F32 to BF16";
  return output;
}

std::vector<Output> cutlass_halves_outputs_with(std::string_view id, const LoadedSpec& loaded,
                                                CutlassOutput weight, CutlassOutput scale) {
  require_flashinfer_sizes(id, loaded.dims);
  std::vector<Output> result;
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    result.push_back(weight(loaded, slot, swapped_rows(loaded, slot)));
  }
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    result.push_back(scale(loaded, slot, swapped_rows(loaded, slot)));
  }
  for (Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(cutlass_halves_bias_output(loaded, slot));
  }
  return result;
}

constexpr std::string_view kSm90Id = "flashinfer/cutlass-sm90-halves";
constexpr std::string_view kFoldedId = "flashinfer/cutlass-sm90-folded-halves";
constexpr std::string_view kMxfp8Id = "flashinfer/cutlass-mxfp8-halves";

}  // namespace

const Layout kFlashinferCutlassSm90HalvesLayout = {
    .id = kSm90Id,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K/128, 4N]\n"
        "w13_bias, w2_bias: BF16 [E, N], when loaded",
    .formula =
        "w13 row g*I+i -> (1-g)*I + i\n"
        "code (r,k): row r - r%16 + 8*k[4] + r%8, column k - k%64 + 32*k[5] + 16*k[2] + 8*k[1] + "
        "4*k[3] + 2*k[0] + r[3]\n"
        "scale (r,c): (c/4, 4r + c%4)",
    .preconditions = "H % 128 == 0, I % 128 == 0",
    .source =
        "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; flashinfer 0.6.16.post3 fused_moe/core.py, "
        "moe_gemm_mixed_utils.cu",
    .kernel_library = "flashinfer 0.6.16.post3",
    .outputs =
        [](const LayoutInput& input) {
          return cutlass_halves_outputs_with(kSm90Id, input.loaded, sm90_weight_output,
                                             sm90_scale_output);
        },
};

const Layout kFlashinferCutlassSm90FoldedHalvesLayout = {
    .id = kFoldedId,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N/64, K/128, 16, 16]\n"
        "w13_bias, w2_bias: BF16 [E, N], when loaded",
    .formula =
        "w13 row g*I+i -> (1-g)*I + i\n"
        "weight byte (r,c) and scale (r,c): as flashinfer/cutlass-sm90-folded",
    .preconditions = "H % 128 == 0, I % 128 == 0",
    .source =
        "vLLM 0.29.0 fused_moe/oracle/mxfp4.py; flashinfer 0.6.18 fused_moe/prepare.py, "
        "moe_gemm_mixed_utils.cu",
    .kernel_library = "flashinfer 0.6.18",
    .outputs =
        [](const LayoutInput& input) {
          return cutlass_halves_outputs_with(kFoldedId, input.loaded, folded_weight_output,
                                             folded_scale_output);
        },
};

const Layout kFlashinferCutlassMxfp8HalvesLayout = {
    .id = kMxfp8Id,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: BF16 [E, N], when loaded",
    .formula =
        "w13 row g*I+i -> (1-g)*I + i\n"
        "scale (r,c): offset ((r/128)*(S/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4",
    .preconditions = "H % 128 == 0, I % 128 == 0",
    .source =
        "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; flashinfer 0.6.16.post3 "
        "quantization/fp4_quantization.py, quantization.cu",
    .outputs =
        [](const LayoutInput& input) {
          return cutlass_halves_outputs_with(kMxfp8Id, input.loaded, rows_output,
                                             swizzled_scale_output);
        },
};

}  // namespace mxfp4
