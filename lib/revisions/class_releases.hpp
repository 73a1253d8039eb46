// Which releases have a model's class.
#pragma once

#include <string>

#include "lib/core/model_config.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// A warning that the release has none of the classes that the config names, with the first release
// that has one; empty where the release has one, where it is not known, and for commits of main,
// whose classes were not read.
[[nodiscard]] std::string missing_class_warning(const RuleSet& rules, const ModelConfig& config);

}  // namespace mxfp4
