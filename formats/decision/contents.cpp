#include "formats/decision/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/blob/blob_reader.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

int64_t expert_bytes(const ExpertLayer& layer) {
  int64_t total = 0;
  for (const SlotSource& slot : layer.slots) {
    for (const auto& expert : slot.experts) {
      for (const Extent& extent : expert) total += extent.bytes;
    }
  }
  return total;
}

// The kind of a tensor by its name in the loaded layout, which packed tensors keep.
TensorKind kind_of(std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  if (name == "w13_weight" || name == "w2_weight") return TensorKind::kCodes;
  if (name.ends_with("_weight_scale")) return TensorKind::kBlockScales;
  return name.ends_with("_bias") ? TensorKind::kBiases : TensorKind::kRest;
}

std::vector<int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

// Throws Error::usage if `wanted` is given and is not one of `layers`, which are in order.
template <class Layer>
void require_layer(const std::vector<Layer>& layers, std::optional<int64_t> wanted) {
  if (!wanted || std::ranges::find(layers, *wanted, &Layer::index) != layers.end()) return;
  const std::string there = layers.empty() ? "none is here"
                                           : fmt::format("the MoE layers are {} to {}",
                                                         layers.front().index, layers.back().index);
  throw Error::usage(fmt::format("--layer: there is no MoE layer {}; {}", *wanted, there));
}

// Bytes of the file that hold data bytes [begin, end).
int64_t stored_bytes_of(const LayerReader& reader, int64_t begin, int64_t end) {
  if (!reader.compressed()) return end - begin;
  int64_t stored = 0;
  const int64_t start = reader.header().data_start;
  for (const SeekEntry& entry : reader.frames()) {
    const int64_t at = entry.decoded_offset - start;
    if (at >= begin && at < end) stored += entry.frame.encoded;
  }
  return stored;
}

}  // namespace

double ByteSizes::ratio() const {
  return data_bytes == 0 ? 0.0
                         : static_cast<double>(stored_bytes) / static_cast<double>(data_bytes);
}

ByteSizes& ByteSizes::operator+=(const ByteSizes& other) {
  data_bytes += other.data_bytes;
  stored_bytes += other.stored_bytes;
  return *this;
}

std::vector<LayerSize> layer_sizes(const ModelLayers& model) {
  std::vector<LayerSize> sizes;
  for (const ExpertLayer& layer : model.layers) {
    const int64_t bytes = expert_bytes(layer);
    sizes.push_back({{bytes, bytes}, layer.index, layer.dims});
  }
  return sizes;
}

std::vector<LayerSize> layer_sizes(const Manifest& manifest) {
  std::vector<LayerSize> sizes;
  for (const ManifestLayer& layer : manifest.layers) {
    const Recipe& recipe = layer.recipe;
    LayerSize size{{0, layer.size},
                   layer.index,
                   {recipe.num_experts(), recipe.hidden_size, recipe.intermediate_size()}};
    for (const ManifestTensor& tensor : layer.tensors) size.data_bytes += tensor.spec.bytes();
    sizes.push_back(size);
  }
  return sizes;
}

ByteSizes total_of(const std::vector<LayerSize>& layers) {
  ByteSizes total;
  for (const LayerSize& layer : layers) total += layer;
  return total;
}

int64_t data_bytes(const std::vector<Manifest>& manifests) {
  int64_t total = 0;
  for (const Manifest& manifest : manifests) total += total_of(layer_sizes(manifest)).data_bytes;
  return total;
}

std::vector<int64_t> layer_numbers(const std::vector<LayerSize>& layers) {
  std::vector<int64_t> numbers(layers.size());
  std::ranges::transform(layers, numbers.begin(), &LayerSize::layer);
  return numbers;
}

std::string_view tensor_kind_name(TensorKind kind) {
  switch (kind) {
    case TensorKind::kCodes:
      return "codes";
    case TensorKind::kBlockScales:
      return "block_scales";
    case TensorKind::kBiases:
      return "biases";
    case TensorKind::kRest:
      break;
  }
  return "rest";
}

std::vector<LayerTensor> checkpoint_tensors(const OpenedCheckpoint& input,
                                            std::optional<int64_t> layer) {
  std::vector<LayerTensor> all;
  require_layer(input.model.layers, layer);
  for (const ExpertLayer& expert_layer : input.model.layers) {
    if (layer && *layer != expert_layer.index) continue;
    for (Slot slot : kAllSlots) {
      std::set<size_t> indices;
      for (const auto& expert : expert_layer.slot(slot).experts) {
        for (const Extent& extent : expert) indices.insert(extent.tensor);
      }
      for (size_t index : indices) {
        const SourceTensor& tensor = input.source->tensors()[index];
        const int64_t bytes = tensor.spec.bytes();
        all.push_back({{bytes, bytes},
                       expert_layer.index,
                       tensor.name,
                       kind_of(slot_name(slot)),
                       std::string(dtype_name(tensor.spec.dtype)),
                       dims_of(tensor.spec.shape),
                       {}});
      }
    }
  }
  return all;
}

std::vector<LayerTensor> blob_tensors(const fs::path& directory, const Manifest& manifest,
                                      std::optional<int64_t> layer) {
  std::vector<LayerTensor> all;
  require_layer(manifest.layers, layer);
  for (const ManifestLayer& entry : manifest.layers) {
    if (layer && *layer != entry.index) continue;
    const LayerReader reader(directory / entry.file);
    int64_t begin = 0;
    for (const ManifestTensor& tensor : entry.tensors) {
      const int64_t bytes = tensor.spec.bytes();
      const bool own_view = !tensor.storage.storage_shape.empty();
      all.push_back({{bytes, stored_bytes_of(reader, begin, begin + bytes)},
                     entry.index,
                     tensor.name,
                     kind_of(tensor.name),
                     std::string(dtype_name(tensor.spec.dtype)),
                     own_view ? tensor.storage.storage_shape : dims_of(tensor.spec.shape),
                     tensor.storage.storage_strides});
      begin += bytes;
    }
  }
  return all;
}

ByteSizes total_of(const std::vector<LayerTensor>& tensors, TensorKind kind) {
  ByteSizes total;
  for (const LayerTensor& tensor : tensors) {
    if (tensor.kind == kind) total += tensor;
  }
  return total;
}

}  // namespace mxfp4
