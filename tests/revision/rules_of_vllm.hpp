// Every release's rules, in order of time.
#pragma once

#include <vector>

#include "lib/revisions/revisions.hpp"

namespace mxfp4::test {

inline std::vector<const RuleSet*> rules_of_vllm() {
  std::vector<const RuleSet*> all;
  for (const RuleSet* rules : all_revisions()) {
    if (rules->engine == Engine::kVllm) all.push_back(rules);
  }
  return all;
}

}  // namespace mxfp4::test
