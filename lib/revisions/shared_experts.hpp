// AMD's fused shared experts: with VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS a model's shared experts become
// the last slots of every rank. Each function is one release's step; the releases call them. Sources:
// _aiter_ops.py (is_fusion_moe_shared_experts_enabled), quantization/utils/config_utils.py, and the
// models' files.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// 0.21.0: whatever the checkpoint's quantization of them is.
void add_fused_shared_experts(RuleSet& rules);
// 0.27.0: GLM-4.5, MiniMax-M3 and Qwen3.5, too.
void fuse_more_shared_experts(RuleSet& rules);
// 0.29.0: only where they are quantized as the routed ones; DeepSeek-V4 by Quark, too.
void fuse_equal_shared_experts(RuleSet& rules);
// 0.30.0: DeepSeek-V4-Pro's FP8 shared expert beside the routed ones.
void fuse_fp8_shared_expert(RuleSet& rules);

}  // namespace mxfp4
