// XPU, EMULATION, B12X_* and FLASHINFER_MOE_EP_DEEP_GEMM: the loaded tensors as they are. Input
// scales are not outputs.
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

std::vector<Output> identity_outputs(const LayoutInput& input) {
  std::vector<Output> result;
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale,
                    Slot::kW13Bias, Slot::kW2Bias}) {
    if (input.loaded.has(slot)) result.push_back(identity_output(input.loaded, slot));
  }
  return result;
}

}  // namespace

const Layout kIdentityLayout = {
    .id = "identity",
    .outputs_doc =
        "w13_weight, w2_weight, w13_weight_scale, w2_weight_scale: as loaded\n"
        "w13_bias, w2_bias: as loaded, when loaded",
    .formula = "out = in",
    .preconditions = "none",
    .source =
        "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py, "
        "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format (pass-through branches)",
    .outputs = identity_outputs,
};

}  // namespace mxfp4
