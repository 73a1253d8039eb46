// CUTLASS_MXFP4_MXFP4 (vLLM's own CUTLASS kernels, compute capability 10.x and 11.x), generic
// family: weights and biases as loaded, scales in the 128 x 4 tile order
// of block_scale_swizzle.hpp.
//
// Example, H = 256: w13's scale (33, 5) goes to byte 1*512 + 1*16 + 1*4 + 1 = 533 of its expert.
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kCutlassMxfp4Id = "cutlass/mxfp4";

Output cutlass_mxfp4_scale_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, columns] = loaded.expert(slot);
  Program program(rows * columns);
  return slot_output(loaded, slot, loaded.tensor(slot),
                     std::move(swizzle_128x4(program, rows, columns)));
}

std::vector<Output> cutlass_mxfp4_outputs(const LayoutInput& input) {
  require_flashinfer_sizes(kCutlassMxfp4Id, input.loaded.dims);
  return scales_only(input.loaded, cutlass_mxfp4_scale_output);
}

}  // namespace

const Layout kCutlassMxfp4Layout = {
    .id = kCutlassMxfp4Id,
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: as loaded, when loaded",
    .formula =
        "weights and biases: as loaded\n"
        "scale (r,c): offset ((r/128)*(S/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4",
    .preconditions = "H % 128 == 0, I % 128 == 0",
    .source =
        "vLLM 0.32.0 fused_moe/oracle/mxfp4.py, generic converter; "
        "fused_moe/experts/cutlass_moe.py, swizzle_mxfp4_scales",
    .outputs = cutlass_mxfp4_outputs,
};

}  // namespace mxfp4
