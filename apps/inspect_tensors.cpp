#include "apps/inspect_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "apps/text_layout.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

std::string ratio_text(const LayerTensor& tensor) {
  return tensor.data_bytes == 0 ? "" : fmt::format("{:.3f}", tensor.ratio());
}

// The length of the longest beginning that all names share and that ends with a dot.
size_t common_prefix(std::span<const LayerTensor> tensors) {
  std::string_view prefix = tensors.front().name;
  for (const LayerTensor& tensor : tensors) {
    const auto differs = std::ranges::mismatch(prefix, tensor.name).in1;
    prefix = prefix.substr(0, static_cast<size_t>(differs - prefix.begin()));
  }
  const size_t dot = prefix.rfind('.');
  return dot == std::string_view::npos ? 0 : dot + 1;
}

// Shows one layer: the beginning that its names share, then a table.
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
         "\n" + console.table(rows);
}

}  // namespace

std::string tensor_kind_text(TensorKind kind) {
  std::string text(tensor_kind_name(kind));
  std::ranges::replace(text, '_', ' ');
  return text;
}

void add_tensors(Json& json, const std::vector<LayerTensor>& tensors) {
  Json& totals = json["totals"] = Json::object();
  for (TensorKind kind : kAllTensorKinds) {
    const ByteSizes total = total_of(tensors, kind);
    totals[std::string(tensor_kind_name(kind))] = {{"data_bytes", total.data_bytes},
                                                   {"stored_bytes", total.stored_bytes}};
  }
  Json& list = json["tensors"] = Json::array();
  for (const LayerTensor& tensor : tensors) {
    list.push_back({{"layer", tensor.layer},
                    {"name", tensor.name},
                    {"kind", tensor_kind_name(tensor.kind)},
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
  for (TensorKind kind : kAllTensorKinds) {
    const ByteSizes total = total_of(tensors, kind);
    totals.push_back(
        {tensor_kind_text(kind), human_bytes(total.data_bytes), human_bytes(total.stored_bytes)});
  }
  return out + "\n" + console.table(totals);
}

}  // namespace mxfp4
