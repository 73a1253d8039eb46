#include "apps/inspect_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "apps/text_layout.hpp"
#include "formats/blob/blob_reader.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kKinds = {"codes", "block_scales", "biases", "rest"};

// By the name in the loaded layout, which packed tensors keep.
std::string_view kind_of(std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  if (name == "w13_weight" || name == "w2_weight") return kKinds[0];
  if (name.ends_with("_weight_scale")) return kKinds[1];
  if (name.ends_with("_bias")) return kKinds[2];
  return kKinds[3];
}

std::vector<int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

// `layers`: those that are there, in order.
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

std::string ratio_text(const LayerTensor& tensor) {
  return tensor.data_bytes == 0 ? ""
                                : fmt::format("{:.3f}", static_cast<double>(tensor.stored_bytes) /
                                                            static_cast<double>(tensor.data_bytes));
}

struct Total {
  int64_t data_bytes = 0;
  int64_t stored_bytes = 0;
};

Total total_of(const std::vector<LayerTensor>& tensors, std::string_view kind) {
  Total total;
  for (const LayerTensor& tensor : tensors) {
    if (tensor.kind != kind) continue;
    total.data_bytes += tensor.data_bytes;
    total.stored_bytes += tensor.stored_bytes;
  }
  return total;
}

// The part of all names that ends with a dot.
size_t common_prefix(std::span<const LayerTensor> tensors) {
  std::string_view prefix = tensors.front().name;
  for (const LayerTensor& tensor : tensors) {
    const auto differs = std::ranges::mismatch(prefix, tensor.name).in1;
    prefix = prefix.substr(0, static_cast<size_t>(differs - prefix.begin()));
  }
  const size_t dot = prefix.rfind('.');
  return dot == std::string_view::npos ? 0 : dot + 1;
}

// One layer: what its names have in common, then a table.
std::string layer_text(const Console& console, std::span<const LayerTensor> tensors) {
  const size_t prefix = common_prefix(tensors);
  std::vector<std::vector<std::string>> rows{
      {"tensor", "dtype", "data", "stored", "ratio", "shape"}};
  for (const LayerTensor& tensor : tensors) {
    std::string shape = fmt::format("{}", tensor.shape);
    if (!tensor.strides.empty()) shape += fmt::format(" strides {}", tensor.strides);
    rows.push_back({tensor.name.substr(prefix), tensor.dtype, human_bytes(tensor.data_bytes),
                    human_bytes(tensor.stored_bytes), ratio_text(tensor), shape});
  }
  const std::string name = tensors.front().name.substr(0, prefix == 0 ? 0 : prefix - 1);
  return "\n" + console.bold(fmt::format("layer {}: {}", tensors.front().layer, visible(name))) +
         "\n" + table(console, rows);
}

}  // namespace

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
        all.push_back({expert_layer.index,
                       tensor.name,
                       std::string(kind_of(slot_name(slot))),
                       std::string(dtype_name(tensor.spec.dtype)),
                       dims_of(tensor.spec.shape),
                       {},
                       bytes,
                       bytes});
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
      all.push_back({entry.index, tensor.name, std::string(kind_of(tensor.name)),
                     std::string(dtype_name(tensor.spec.dtype)),
                     own_view ? tensor.storage.storage_shape : dims_of(tensor.spec.shape),
                     tensor.storage.storage_strides, bytes,
                     stored_bytes_of(reader, begin, begin + bytes)});
      begin += bytes;
    }
  }
  return all;
}

void add_tensors(Json& json, const std::vector<LayerTensor>& tensors) {
  Json& totals = json["totals"] = Json::object();
  for (std::string_view kind : kKinds) {
    const Total total = total_of(tensors, kind);
    totals[std::string(kind)] = {{"data_bytes", total.data_bytes},
                                 {"stored_bytes", total.stored_bytes}};
  }
  Json& list = json["tensors"] = Json::array();
  for (const LayerTensor& tensor : tensors) {
    list.push_back({{"layer", tensor.layer},
                    {"name", tensor.name},
                    {"kind", tensor.kind},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"strides", tensor.strides.empty() ? Json() : Json(tensor.strides)},
                    {"data_bytes", tensor.data_bytes},
                    {"stored_bytes", tensor.stored_bytes}});
  }
}

std::string tensors_text(const Console& console, const std::vector<LayerTensor>& tensors) {
  std::string out;
  for (auto begin = tensors.begin(); begin != tensors.end();) {
    const auto end = std::find_if(begin, tensors.end(), [&](const LayerTensor& tensor) {
      return tensor.layer != begin->layer;
    });
    out += layer_text(console, {begin, end});
    begin = end;
  }
  std::vector<std::vector<std::string>> totals{{"kind", "data", "stored"}};
  for (std::string_view kind : kKinds) {
    const Total total = total_of(tensors, kind);
    std::string name(kind);
    std::ranges::replace(name, '_', ' ');
    totals.push_back({name, human_bytes(total.data_bytes), human_bytes(total.stored_bytes)});
  }
  return out + "\n" + table(console, totals);
}

}  // namespace mxfp4
