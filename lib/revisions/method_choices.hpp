// The method classes of compressed-tensors and AutoRound, which choose their experts themselves: the steps
// by which releases changed them. Sources: compressed_tensors_moe_w4a4_mxfp4.py,
// quantization/inc/schemes/inc_mxfp4_moe.py, fused_moe/oracle/mxfp4.py (_validate_mxfp4_experts_config).
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Marlin's repack is compiled for CUDA only, so that loading stops elsewhere.
[[nodiscard]] DirectRow no_marlin_repack();
// On XPU the tensors stay as they are loaded.
[[nodiscard]] DirectRow xpu_as_loaded();

// --moe-backend b12x is asked of the oracle after all.
void ask_oracle_for_b12x(RuleSet& rules);
// compressed-tensors asks the oracle for flashinfer_moe_ep_*, and then has EPLB; AutoRound refuses them.
void ask_for_moe_ep(RuleSet& rules);
// The engine asks the class that was chosen whether it supports the deployment.
void ask_classes_afterwards(RuleSet& rules);

}  // namespace mxfp4
