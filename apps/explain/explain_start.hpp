// Where `explain` would let the engine's start take the weights from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/decision/decide.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

struct StartSource {
  bool blob = false;  // else the plug-in makes the weights from the checkpoint, at each start
  std::string why{};  // of a blob
  std::vector<std::string> serve{};  // without a blob, the parts of the engine's command
};

// Empty if nothing can be converted, and of a blob. `source`: the checkpoint, null without weights.
[[nodiscard]] std::optional<StartSource> start_source(const Conversion& conversion,
                                                      const Source* source);

}  // namespace mxfp4
