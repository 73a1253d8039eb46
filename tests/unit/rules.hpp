// The rules that tests of decisions share.
#pragma once

#include "lib/revisions/revisions.hpp"

namespace mxfp4::test {

inline const RuleSet& rules() { return revision_by_name("vllm-2026-05-18"); }

}  // namespace mxfp4::test
