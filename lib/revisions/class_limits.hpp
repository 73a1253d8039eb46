// Which model classes a release has, and what they cannot do: read from class_table.hpp.
#pragma once

#include <string>

#include "lib/core/deployment.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The first of the config's classes that the table knows, as it names it; the config's first where
// it knows none.
[[nodiscard]] std::string model_class_of(const ModelConfig& config);

// No limits where the class is not known, nor for SGLang and commits of main, which were not read.
[[nodiscard]] ClassLimits class_limits(const RuleSet& rules, const ModelConfig& config,
                                       Platform platform);

// A warning that the release has none of the classes that the config names, with the first release
// that has one; empty where the release has one, or a class is not known.
[[nodiscard]] std::string missing_class_warning(const RuleSet& rules, const ModelConfig& config);

}  // namespace mxfp4
