// One release's answer to explain's question: --against asks several releases.
#pragma once

#include <memory>

#include "apps/explain/explain_against.hpp"
#include "apps/options.hpp"
#include "formats/decision/opened_checkpoint.hpp"

namespace mxfp4 {

// The part of the question that does not depend on the rules.
struct ExplainCall {
  const ExplainOptions& options;
  std::shared_ptr<Source> source{};  // opened when it is first needed; null without a checkpoint
};

// An error is part of the answer: the question may have a name that only another revision knows.
[[nodiscard]] Side explain_side(const RuleSet& rules, ExplainCall& call);

}  // namespace mxfp4
