// Which of a config's rules for modules holds for a layer's experts.
#pragma once

#include <string_view>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

// The rule that a quantization config has for the experts `module`, by the checkpoint's name; null
// when it has none.
[[nodiscard]] const ModuleQuantization* find_rule(const Quantization& quantization,
                                                  std::string_view module);

}  // namespace mxfp4
