// FLASHINFER_CUTLASS_MXFP4_BF16 (compute capability 9.0), gpt_oss family: the mixed-input
// interleave.
//
//   w13_weight         U8 [E, 2I, H/2]     w2_weight         U8 [E, H, I/2]
//   w13_weight_scale   U8 [E, H/128, 8I]   w2_weight_scale   U8 [E, I/128, 4H]
//   w13_bias           BF16 [E, 2I]        w2_bias           BF16 [E, H]
//
// w13 rows become all up, then all gate: row r < I is loaded row 2r+1, row r >= I loaded row
// 2(r-I). Weights: the nibble of row r, element k (x[i] = bit i of x) goes to
//   row d            = r with bit 3 replaced by k[4]
//   nibble column q  = (k - k%64) + 32*k[5] + 16*k[2] + 8*k[1] + 4*k[3] + 2*k[0] + r[3]
// so an output byte joins the same element of two rows 8 apart. Scales:
//   out[e, c/4, 4r + c%4] = in[e, r, c]
// w2_bias is as loaded. In w13_bias a NaN becomes 0x7FFF; loaded as F32, it is rounded.
//
// Example: row 9, element 21 (10101 in binary) goes to row 9 (bit 3 = k[4] = 1), nibble column
// 16*1 + 8*0 + 4*0 + 2*1 + 1 = 19, the high nibble of byte 9.
//
// Preconditions: H % 128 == 0, I % 128 == 0; both biases.
// Source: vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 fused_moe/core.py
// (interleave_moe_{weights,scales}_for_sm90_mixed_gemm), moe_gemm_mixed_utils.cu. From 0.6.18 on
// flashinfer interleaves as flashinfer_cutlass_folded.cpp states.
#include "lib/layouts/all.hpp"
#include "lib/layouts/flashinfer_cutlass_common.hpp"

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
    .backends = "FLASHINFER_CUTLASS_MXFP4_BF16, vLLM 0.22.0 to 0.28.0",
    .outputs_doc =
        "w13_weight U8 [E, 2I, H/2], w2_weight U8 [E, H, I/2]\n"
        "w13_weight_scale U8 [E, H/128, 8I], w2_weight_scale U8 [E, I/128, 4H]\n"
        "w13_bias BF16 [E, 2I], w2_bias BF16 [E, H]",
    .formula =
        "w13 row r < I takes loaded row 2r+1, row r >= I loaded row 2(r-I)\n"
        "weight nibble (r, k) goes to row r with bit 3 = k[4], column (k - k%64) + 32*k[5] + "
        "16*k[2] + 8*k[1] + 4*k[3] + 2*k[0] + r[3]\n"
        "scale (r, c) goes to (c/4, 4r + c%4)\n"
        "w13_bias: NaN becomes 0x7FFF",
    .preconditions = "H % 128 == 0, I % 128 == 0; both biases; gpt_oss family",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
        "fused_moe/core.py, moe_gemm_mixed_utils.cu",
    .kernel_library = "flashinfer 0.6.11.post2",
    .outputs = cutlass_sm90_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
