// AITER_TRITON_MXFP4_MXFP4 (AITER's Triton kernel for gfx1250, weights and activations of 4 bits):
// weights as loaded, scales in tiles of 32 rows and 4 columns. The shapes are the memory's; the
// engine's views exchange the last two axes. With gpt-oss's activations w13's rows are interleaved
// first: weights and scales, not the bias. The converter does so for gpt-oss checkpoints too.
//
// Example: scale (n, s) = (53, 13) -> row 1, column 128*3 + 4*21 + 1 = 469.
#include "lib/core/checked.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kStripe = 32;
constexpr int64_t kColumns = 4;

enum class W13Rows : uint8_t { kKept, kInterleaved };

// Says that the engine's view of rows x columns exchanges them.
void view_transposed(Output& output) {
  const auto& dims = output.spec.shape.dims();
  output.storage.storage_shape = {dims[0], dims[2], dims[1]};
  output.storage.storage_strides = {checked_mul(dims[1], dims[2]), 1, dims[2]};
}

Output aiter_triton_w4a4_output(const LoadedSpec& loaded, Slot slot, W13Rows w13) {
  const auto [rows, columns] = loaded.expert(slot);
  const bool scale = slot == Slot::kW13WeightScale || slot == Slot::kW2WeightScale;
  Program program(checked_mul(rows, columns));
  if (w13 == W13Rows::kInterleaved && slot_is_w13(slot)) {
    program.then(Permute{Unit::kByte, {2, rows / 2, columns}, {1, 0, 2}});
  }
  TensorSpec spec = loaded.tensor(slot);
  if (scale) {
    program.then(Permute{
        Unit::kByte, {rows / kStripe, kStripe, columns / kColumns, kColumns}, {0, 2, 1, 3}});
    spec.shape = {loaded.dims.num_experts, rows / kStripe, kStripe * columns};
  }
  Output output = slot_output(loaded, slot, spec, std::move(program));
  view_transposed(output);
  return output;
}

std::vector<Output> aiter_triton_w4a4_outputs_with(std::string_view id, const LoadedSpec& loaded,
                                                   W13Rows w13) {
  require_multiple(id, "hidden size", loaded.dims.hidden_size, kStripe * kColumns);
  require_multiple(id, "intermediate size", loaded.dims.intermediate_size, kStripe * kColumns);
  std::vector<Output> result;
  for (Slot slot :
       {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    result.push_back(aiter_triton_w4a4_output(loaded, slot, w13));
  }
  for (Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(f32_bias_output(loaded, slot));
  }
  return result;
}

Layout aiter_triton_w4a4(const char* id, W13Rows w13, const char* formula) {
  return {.id = id,
          .outputs_doc =
              "w13_weight, w2_weight: U8 [E, N, C]\n"
              "w13_weight_scale, w2_weight_scale: U8 [E, N/32, 32*S]\n"
              "w13_bias, w2_bias: F32 [E, N], when loaded",
          .formula = formula,
          .preconditions = "H and I multiples of 128",
          .source =
              "ROCm/aiter 73d928d61b9b aiter/ops/triton/utils/shuffle.py, shuffle_scale_moe; vLLM "
              "0.33.0 fused_moe/oracle/mxfp4.py",
          .kernel_library = "AITER 73d928d61b9b",
          .outputs = [=](const LayoutInput& input) {
            return aiter_triton_w4a4_outputs_with(id, input.loaded, w13);
          }};
}

}  // namespace

const Layout kAiterTritonW4a4Layout =
    aiter_triton_w4a4("aiter/triton-w4a4", W13Rows::kKept,
                      "value byte (n,c): as loaded\n"
                      "scale (n,s): row n/32, column 128*(s/4) + 4*(n%32) + s%4");
const Layout kAiterTritonW4a4RowInterleavedLayout =
    aiter_triton_w4a4("aiter/triton-w4a4-row-interleaved", W13Rows::kInterleaved,
                      "w13: row 2i+g takes row g*I+i, not in the bias\n"
                      "as aiter/triton-w4a4");

}  // namespace mxfp4
