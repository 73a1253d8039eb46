// The sizes of a checkpoint's or a blob's layers, as `inspect` shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/conversion/opened_checkpoint.hpp"

namespace mxfp4 {

// One MoE layer. A checkpoint's bytes are stored as they are.
struct LayerSize {
  int64_t layer = 0;
  LayerDims dims;            // without padding
  int64_t data_bytes = 0;    // of its tensors
  int64_t stored_bytes = 0;  // of its file
};

[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelLayers& model);
// Of one rank.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const Manifest& manifest);

// A list of objects.
[[nodiscard]] Json layer_sizes_json(const std::vector<LayerSize>& layers);
// A table with a row for every run of layers that are alike.
[[nodiscard]] std::string layer_sizes_text(const Console& console,
                                           const std::vector<LayerSize>& layers);

[[nodiscard]] int64_t data_bytes_of(const std::vector<LayerSize>& layers);
[[nodiscard]] int64_t stored_bytes_of(const std::vector<LayerSize>& layers);
[[nodiscard]] std::vector<int64_t> layer_numbers(const std::vector<LayerSize>& layers);

// "0-35" or "0-3, 7".
[[nodiscard]] std::string ranges(const std::vector<int64_t>& numbers);

}  // namespace mxfp4
