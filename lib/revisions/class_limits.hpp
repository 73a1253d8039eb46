// What the model classes of a release cannot do: read from class_table.hpp.
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

}  // namespace mxfp4
