// FLASHINFER_CUTLASS_MXFP4_BF16 (compute capability 9.0) with flashinfer 0.6.18 and later, gpt_oss
// family: the mixed-input interleave by words, with folded scales.
//
// Example: a lone byte 0xB4 at (r, c) = (9, 45) goes to row 9 (bit 3 = c[3] = 1), word 8 + 0 + 1 =
// 9, slot 3, and gives the word the value 0x64000800. Scale (85, 6) goes to [1, 1, 5, 6].
#include "lib/layouts/flashinfer_cutlass_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kCutlassFoldedId = "flashinfer/cutlass-sm90-folded";
constexpr int64_t kBlockRows = 64;  // of scales
constexpr int64_t kBlockColumns = 4;
constexpr int64_t kFolds = 4;  // rows of a block side by side

std::vector<Output> cutlass_folded_outputs(const LayoutInput& input) {
  return cutlass_outputs(kCutlassFoldedId, input.loaded, folded_weight_output, folded_scale_output);
}

}  // namespace

Program folded_weight_definition(int64_t rows, int64_t columns) {
  Program program(rows * columns);
  program.then(hopper_rows_bytes(rows, columns));
  program.then(Recode{&kHopperMix, rows * columns / 4});
  return program;
}

Output folded_weight_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, row_bytes] = loaded.expert(slot);
  rows.then(hopper_rows_step(count, row_bytes));
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(rows));
}

Output folded_scale_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, columns] = loaded.expert(slot);
  const int64_t blocks = count / kBlockRows;
  const int64_t across = columns / kBlockColumns;
  constexpr int64_t kFoldRows = kBlockRows / kFolds;
  rows.then(
      Permute{Unit::kByte, {blocks, kFolds, kFoldRows, across, kBlockColumns}, {0, 3, 2, 1, 4}});
  const TensorSpec spec{
      DType::kU8, {loaded.dims.num_experts, blocks, across, kFoldRows, kFolds * kBlockColumns}};
  return slot_output(loaded, slot, spec, std::move(rows));
}

const Layout kFlashinferCutlassSm90FoldedLayout = {
    .id = kCutlassFoldedId,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N/64, K/128, 16, 16]\n"
        "w13_bias, w2_bias: BF16 [E, N]",
    .formula =
        "w13 row 2i+g -> (1-g)*I + i\n"
        "weight byte (r,c): row r - r%16 + 8*c[3] + r%8, word 8*(c/32) + 4*c[4] + c%4, slot 2*c[2] "
        "+ r[3]\n"
        "mix: as triton/hopper\n"
        "scale (r,c): (r/64, c/4, r%16, 4*((r%64)/16) + c%4)\n"
        "w13_bias: a NaN becomes 0x7FFF, F32 is rounded",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source =
        "vLLM 0.29.0 fused_moe/oracle/mxfp4.py; flashinfer 0.6.18 fused_moe/prepare.py "
        "(interleave_moe_{weights,scales}_for_sm90_mixed_gemm), moe_gemm_mixed_utils.cu",
    .kernel_library = "flashinfer 0.6.18",
    .outputs = cutlass_folded_outputs,
};

}  // namespace mxfp4
