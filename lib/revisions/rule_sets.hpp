// One value a revision, each defined in the file of its date.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

extern const RuleSet kRules20260518;
extern const RuleSet kRules20260817;

}  // namespace mxfp4
