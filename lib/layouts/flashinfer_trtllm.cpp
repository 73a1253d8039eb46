// FLASHINFER_TRTLLM_MXFP4_BF16 and _MXFP8: one weight format, both families. Rows are shuffled for
// tiles of 128, scales put in the 128 x 4 tile order of block_scale_swizzle.hpp.
//
// Example: w13 rows 0..9 come from loaded rows 1 5 9 13 17 21 25 29 0 4 (gpt_oss).
#include "lib/core/dtype.hpp"
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kTrtllmId = "flashinfer/trtllm";

// Both row orders, folded into one gather.
Program row_program(const LayoutInput& input, Slot slot) {
  const auto [rows, row_bytes] = input.loaded.expert(slot);
  Program program(rows * row_bytes);
  if (slot_is_w13(slot)) {
    program.then(GatherRows{row_bytes, up_gate_pairs(input.parameters.family, rows)});
  }
  return program.then(GatherRows{row_bytes, trtllm_shuffled_rows(rows)});
}

Output trtllm_weight_output(const LayoutInput& input, Slot slot) {
  return slot_output(input.loaded, slot, input.loaded.tensor(slot), row_program(input, slot));
}

Output trtllm_scale_output(const LayoutInput& input, Slot slot) {
  const auto [rows, columns] = input.loaded.expert(slot);
  TensorSpec spec = input.loaded.tensor(slot);
  spec.dtype = DType::kF8E4M3;
  Program program = row_program(input, slot);
  Output output =
      slot_output(input.loaded, slot, spec, std::move(swizzle_128x4(program, rows, columns)));
  output.storage.torch_dtype = "float8_e4m3fn";
  return output;
}

Output trtllm_bias_output(const LayoutInput& input, Slot slot) {
  TensorSpec spec = input.loaded.tensor(slot);
  Program program = row_program(input, slot);
  if (spec.dtype == DType::kBF16) {
    program.then(Recode{&kWidenBf16ToF32, input.loaded.expert(slot).rows});
  }
  spec.dtype = DType::kF32;
  return slot_output(input.loaded, slot, spec, std::move(program));
}

std::vector<Output> trtllm_outputs(const LayoutInput& input) {
  require_flashinfer_sizes(kTrtllmId, input.loaded.dims);
  if (input.parameters.family == Family::kGptOss) require_biases(kTrtllmId, input.loaded);
  std::vector<Output> result = {
      trtllm_weight_output(input, Slot::kW13Weight),
      trtllm_weight_output(input, Slot::kW2Weight),
      trtllm_scale_output(input, Slot::kW13WeightScale),
      trtllm_scale_output(input, Slot::kW2WeightScale),
  };
  if (input.loaded.bias) {
    result.push_back(trtllm_bias_output(input, Slot::kW13Bias));
    result.push_back(trtllm_bias_output(input, Slot::kW2Bias));
  }
  return result;
}

}  // namespace

const Layout kFlashinferTrtllmLayout = {
    .id = kTrtllmId,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: F8_E4M3 [E, N, S] (e8m0 bytes)\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded",
    .formula =
        "w13 row 2i+g -> 2i + 1 - g (gpt_oss)\n"
        "w13 row g*I+i -> 2i + 1 - g (generic)\n"
        "every row r -> 32*(r/32) + 8*(r%4) + (r%32)/4\n"
        "scale (r,c): offset ((r/128)*(S/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4",
    .preconditions = "H % 128 == 0, I % 128 == 0; gpt_oss: both biases",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 "
        "fused_moe/core.py, utils.py, quantization.cu",
    .outputs = trtllm_outputs,
    .reads = {.family = true},
};

}  // namespace mxfp4
