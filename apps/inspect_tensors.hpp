// The tensors of a checkpoint's or a blob's layers, as `inspect` shows them.
#pragma once

#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "formats/decision/contents.hpp"

namespace mxfp4 {

// "block scales"
[[nodiscard]] std::string tensor_kind_text(TensorKind kind);

// Adds the members "totals", an object by kind, and "tensors", a list of objects.
void add_tensors(Json& json, const std::vector<LayerTensor>& tensors);
// A table for each layer, and one of the totals.
[[nodiscard]] std::string tensors_text(const Console& console,
                                       const std::vector<LayerTensor>& tensors);

}  // namespace mxfp4
