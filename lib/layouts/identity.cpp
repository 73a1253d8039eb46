// XPU, EMULATION, B12X_* and FLASHINFER_MOE_EP_DEEP_GEMM: the loaded tensors as they are.
//
//   every slot -> the same dtype, shape and bytes; biases optional; input scales are not outputs
//
// Preconditions: none. Source: vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py,
// convert_gpt_oss_weight_to_mxfp4_moe_kernel_format (pass-through branches).
#include "lib/layouts/all.hpp"

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
    .backends = "XPU, EMULATION; B12X_*, FLASHINFER_MOE_EP_DEEP_GEMM (generic)",
    .outputs_doc = "every tensor as loaded",
    .formula = "out = in",
    .preconditions = "none",
    .source = "vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py",
    .kernel_library = "",
    .outputs = identity_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
