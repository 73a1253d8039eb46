// DEEPGEMM_MXFP4: scales widened to F32, everything else as loaded, both families alike.
//
// Example: code 127 (1.0) -> 0x3F800000 -> bytes 00 00 80 3F. Code 0 gives +0.0 and code 255 +inf,
// as in the reference; the shift is injective, so the inverse v = word >> 23 is exact.
#include "lib/core/dtype.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {
namespace {

Output deepgemm_f32_scale_output(const LoadedSpec& loaded, Slot slot) {
  TensorSpec spec = loaded.tensor(slot);
  spec.dtype = DType::kF32;
  const int64_t codes = loaded.expert(slot).bytes();
  Program program(codes);
  program.then(Recode{&kE8m0ToF32, codes});
  return slot_output(loaded, slot, spec, std::move(program));
}

std::vector<Output> deepgemm_f32_outputs(const LayoutInput& input) {
  return scales_only(input.loaded, deepgemm_f32_scale_output);
}

}  // namespace

const Layout kDeepgemmF32Layout = {
    .id = "deepgemm/scale-f32",
    .outputs_doc =
        "w13_weight, w2_weight: as loaded\n"
        "w13_weight_scale, w2_weight_scale: F32 [E, N, S]\n"
        "w13_bias, w2_bias: as loaded, when loaded",
    .formula = "scale: s << 23",
    .preconditions = "none",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py, quantization/utils/fp8_utils.py, "
        "_upcast_e8m0_to_fp32",
    .outputs = deepgemm_f32_outputs,
};

}  // namespace mxfp4
