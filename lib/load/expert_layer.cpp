#include "lib/load/expert_layer.hpp"

#include <algorithm>
#include <array>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kAllStyles.size()> kStyleNames = {
    "gpt_oss", "gpt_oss_original", "deepseek_v4", "quark", "compressed_tensors", "mxfp4", "loaded",
};

// In the order of the enumeration.
constexpr std::array<std::string_view, 6> kLoaderNames = {
    "gpt_oss_stacked", "gpt_oss_per_expert", "quark_stacked", "inkling_stacked", "generic",
    "loaded",
};

}  // namespace

void refuse_tensor(const NamedTensor& tensor, const std::string& message) {
  throw Error::input(message).at_key(tensor.name).in_file(tensor.file);
}

std::string_view style_name(Style style) { return kStyleNames[static_cast<size_t>(style)]; }

std::string_view loader_name(Loader loader) { return kLoaderNames[static_cast<size_t>(loader)]; }

std::optional<Loader> loader_from_name(std::string_view name) {
  const auto found = std::ranges::find(kLoaderNames, name);
  if (found == kLoaderNames.end()) return std::nullopt;
  return static_cast<Loader>(found - kLoaderNames.begin());
}

std::optional<Style> style_from_name(std::string_view name) {
  for (size_t i = 0; i < kStyleNames.size(); ++i) {
    if (kStyleNames[i] == name) return static_cast<Style>(i);
  }
  return std::nullopt;
}

}  // namespace mxfp4
