// The sizes of a checkpoint's or a blob's layers, as `inspect` shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "formats/decision/contents.hpp"

namespace mxfp4 {

// A list of objects.
[[nodiscard]] Json layer_sizes_json(const std::vector<LayerSize>& layers);
// A table with a row for each run of equal layers.
[[nodiscard]] std::string layer_sizes_text(const Console& console,
                                           const std::vector<LayerSize>& layers);

}  // namespace mxfp4
