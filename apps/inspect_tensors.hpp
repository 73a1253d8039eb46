// What `inspect` says of single tensors, of a checkpoint's layers and of a blob's alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/conversion/opened_checkpoint.hpp"

namespace mxfp4 {

// A tensor of a layer. A checkpoint's is stored as it is.
struct LayerTensor {
  int64_t layer = 0;
  std::string name;
  std::string kind;  // "codes", "block_scales", "biases", "rest"
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty: row by row without gaps
  int64_t data_bytes = 0;
  int64_t stored_bytes = 0;
};

// Of all layers, or of `layer`. Throws Error::usage when there is no such layer.
[[nodiscard]] std::vector<LayerTensor> checkpoint_tensors(const OpenedCheckpoint& input,
                                                          std::optional<int64_t> layer);
// The same of one rank; reads the seek tables of the layers' files. Throws Error::input naming the
// file.
[[nodiscard]] std::vector<LayerTensor> blob_tensors(const std::filesystem::path& directory,
                                                    const Manifest& manifest,
                                                    std::optional<int64_t> layer);

// The members "totals", an object by kind, and "tensors", a list of objects.
void add_tensors(Json& json, const std::vector<LayerTensor>& tensors);
// A table for each layer, and one of the totals.
[[nodiscard]] std::string tensors_text(const Console& console,
                                       const std::vector<LayerTensor>& tensors);

}  // namespace mxfp4
