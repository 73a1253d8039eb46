// HUMMING's layouts by the version of humming-kernels that a release of vLLM pins. Each function
// replaces the rows of HUMMING. What the converter or the kernels of that version refuse is refused
// here, too: nothing could serve from it.
#pragma once

#include <string_view>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

void humming_kernels_0_1_4(RuleSet& rules);   // to 0.1.10: vLLM 0.23.0 to 0.27.1
void humming_kernels_0_1_12(RuleSet& rules);  // vLLM 0.28.0 to 0.30.0
void humming_kernels_0_1_16(RuleSet& rules);  // vLLM 0.31.0
void humming_kernels_0_1_17(RuleSet& rules);  // and 0.1.19: vLLM 0.32.0 and 0.33.0

// For a revision that cannot load HUMMING, or of which no bytes are known.
void refuse_humming(RuleSet& rules, std::string_view reason, std::string_view type = "");

}  // namespace mxfp4
