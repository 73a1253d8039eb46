// Rules of single models: what a model's own class in the engine does beside the methods and tables
// that all models share. A release that brings the model calls its function.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Kimi-K3's smallest slices.
void cut_kimi_k3(RuleSet& rules);
// Kimi-K3 on gfx950, whose method class takes AITER without the selector; and the end of that.
void serve_situ_on_gfx950(RuleSet& rules);
void leave_situ_to_selector(RuleSet& rules);
void serve_deepseek_v41(RuleSet& rules);
void serve_ling_3(RuleSet& rules);
// FP8 models that store their routed experts as MXFP4: MiMo-V2.6.
void serve_stored_mxfp4(RuleSet& rules);

}  // namespace mxfp4
