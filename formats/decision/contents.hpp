// What a checkpoint or a blob holds, layer by layer and tensor by tensor, with the bytes that each
// takes. Both give the same types, so that they are shown alike.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/decision/open_checkpoint.hpp"

namespace mxfp4 {

// Bytes of tensors, decoded and as they are stored. A checkpoint's two sizes are equal.
struct ByteSizes {
  int64_t data_bytes = 0;
  int64_t stored_bytes = 0;

  // stored / data; 0 without data.
  [[nodiscard]] double ratio() const;
  ByteSizes& operator+=(const ByteSizes& other);
};

// One MoE layer. A blob's stored_bytes count the layer's whole file.
struct LayerSize : ByteSizes {
  int64_t layer = 0;
  LayerDims dims;  // without padding
};

[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelLayers& model);
// The layers of one rank.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const Manifest& manifest);

[[nodiscard]] ByteSizes total_of(const std::vector<LayerSize>& layers);
// Bytes of all tensors of all ranks, decoded.
[[nodiscard]] int64_t data_bytes(const std::vector<Manifest>& manifests);
[[nodiscard]] std::vector<int64_t> layer_numbers(const std::vector<LayerSize>& layers);

// What a tensor of a layer is for.
enum class TensorKind : uint8_t { kCodes, kBlockScales, kBiases, kRest };
inline constexpr std::array kAllTensorKinds = {TensorKind::kCodes, TensorKind::kBlockScales,
                                               TensorKind::kBiases, TensorKind::kRest};
// "codes", "block_scales", "biases", "rest"
[[nodiscard]] std::string_view tensor_kind_name(TensorKind kind);

// A tensor of a layer.
struct LayerTensor : ByteSizes {
  int64_t layer = 0;
  std::string name;
  TensorKind kind = TensorKind::kRest;
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty: row by row without gaps
};

// The tensors of all layers, or of `layer`. Throws Error::usage if there is no such layer.
[[nodiscard]] std::vector<LayerTensor> checkpoint_tensors(const OpenedCheckpoint& input,
                                                          std::optional<int64_t> layer);
// The same of one rank's blob; reads the seek tables of the layers' files. Throws Error::input
// naming the file, too.
[[nodiscard]] std::vector<LayerTensor> blob_tensors(const std::filesystem::path& directory,
                                                    const Manifest& manifest,
                                                    std::optional<int64_t> layer);

[[nodiscard]] ByteSizes total_of(const std::vector<LayerTensor>& tensors, TensorKind kind);

}  // namespace mxfp4
