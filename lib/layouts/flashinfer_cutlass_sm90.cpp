// FLASHINFER_CUTLASS_MXFP4_BF16 (compute capability 9.0), gpt_oss family: the mixed-input
// interleave. An output byte joins the same element of two rows 8 apart. From 0.6.18 on flashinfer
// interleaves as flashinfer_cutlass_folded.cpp states.
//
// Example: row 9, element 21 (10101 in binary) goes to row 9 (bit 3 = k[4] = 1), nibble column
// 16*1 + 8*0 + 4*0 + 2*1 + 1 = 19, the high nibble of byte 9.
#include "lib/layouts/flashinfer_cutlass_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kCutlassSm90Id = "flashinfer/cutlass-sm90";
constexpr int64_t kScaleGroup = 4;

// Axes: r/16, r[3], r%8, k/64, k[5], k[4], k[3], k[2], k[1], k[0].
Permute interleave_weights(int64_t rows, int64_t elements) {
  return {Unit::kNibble,
          {rows / 16, 2, 8, elements / 64, 2, 2, 2, 2, 2, 2},
          {0, 5, 2, 3, 4, 7, 8, 6, 9, 1}};
}

std::vector<Output> cutlass_sm90_outputs(const LayoutInput& input) {
  return cutlass_outputs(kCutlassSm90Id, input.loaded, sm90_weight_output, sm90_scale_output);
}

}  // namespace

Output sm90_weight_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, row_bytes] = loaded.expert(slot);
  rows.then(interleave_weights(count, row_bytes * kCodesPerByte));
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(rows));
}

Output sm90_scale_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, columns] = loaded.expert(slot);
  const int64_t groups = columns / kScaleGroup;
  rows.then(Permute{Unit::kByte, {count, groups, kScaleGroup}, {1, 0, 2}});
  const TensorSpec spec{DType::kU8, {loaded.dims.num_experts, groups, count * kScaleGroup}};
  return slot_output(loaded, slot, spec, std::move(rows));
}

const Layout kFlashinferCutlassSm90Layout = {
    .id = kCutlassSm90Id,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, K/128, 4N]\n"
        "w13_bias, w2_bias: BF16 [E, N]",
    .formula =
        "w13 row 2i+g -> (1-g)*I + i\n"
        "code (r,k): row r - r%16 + 8*k[4] + r%8, column k - k%64 + 32*k[5] + 16*k[2] + 8*k[1] + "
        "4*k[3] + 2*k[0] + r[3]\n"
        "scale (r,c): (c/4, 4r + c%4)\n"
        "w13_bias: a NaN becomes 0x7FFF, F32 is rounded",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
        "fused_moe/core.py (interleave_moe_{weights,scales}_for_sm90_mixed_gemm), "
        "moe_gemm_mixed_utils.cu",
    .kernel_library = "flashinfer 0.6.11.post2",
    .outputs = cutlass_sm90_outputs,
};

}  // namespace mxfp4
