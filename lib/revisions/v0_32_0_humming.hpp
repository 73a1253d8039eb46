// HUMMING's layouts from vLLM 0.32.0 on.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Replaces the rows of HUMMING.
void allow_humming_0_32(RuleSet& rules);

}  // namespace mxfp4
