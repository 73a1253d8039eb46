// vLLM 0.32.0's second part, v0_32_0_methods.cpp.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The method classes and models that this release serves in another way.
void change_methods_0_32(RuleSet& rules);
// Layouts of humming-kernels 0.1.17, and the activations that Humming's converter gets.
void change_humming_0_32(RuleSet& rules);

}  // namespace mxfp4
