// `explain --batch`: answers many questions.
#pragma once

#include <string>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Answers the JSON lines of `path`, "-" for stdin, with one line each, in order. A refusal is an
// answer. Throws Error::input naming file and line for a line that is not a deployment.
int explain_batch(const RuleSet& rules, const std::string& path, bool traces);

}  // namespace mxfp4
