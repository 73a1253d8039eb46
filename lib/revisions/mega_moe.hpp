// Mega MoE: kernels that DeepSeek-V4, V4.1 and Kimi-K3 take for a value of --moe-backend without the
// oracle. Each function is one release's step; the releases call them.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// 0.21.0: deep_gemm_mega_moe for DeepSeek-V4, with the layout of DeepGEMM's kernel.
void add_deepseek_mega_moe(RuleSet& rules);
// 0.23.0: a rank holds EPLB's redundant experts, too.
void repeat_mega_moe_experts(RuleSet& rules);
// 0.27.0: Kimi-K3.
void add_kimi_mega_moe(RuleSet& rules);
// 0.30.0: DeepSeek-V4.1; DeepSeek's classes pad the intermediate size, in this release only.
void add_deepseek_v41_mega_moe(RuleSet& rules);
// 0.31.0: DeepSeek's router has to normalize its weights; nothing is padded.
void require_normalized_mega_moe(RuleSet& rules);
// 0.32.0: aiter_mega_moe for DeepSeek-V4.
void add_aiter_mega_moe(RuleSet& rules);
// 0.33.0: LoRA is refused by name.
void refuse_lora_with_mega_moe(RuleSet& rules);

}  // namespace mxfp4
