#include "lib/core/deployment.hpp"

#include <charconv>

namespace mxfp4 {

std::string_view selector_name(Selector selector) {
  return selector == Selector::kGptOss ? "gpt_oss" : "deepseek_v4";
}

std::optional<Selector> selector_from_name(std::string_view name) {
  for (Selector selector : {Selector::kGptOss, Selector::kDeepseekV4}) {
    if (selector_name(selector) == name) return selector;
  }
  return std::nullopt;
}

std::string Target::knob(std::string_view name, std::string_view fallback) const {
  const auto found = knobs.find(std::string(name));
  return found == knobs.end() ? std::string(fallback) : found->second;
}

std::optional<int> cuda_capability(std::string_view arch) {
  if (!arch.starts_with("sm")) return std::nullopt;
  arch.remove_prefix(2);
  int capability = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), capability);
  if (error != std::errc{} || end != arch.data() + arch.size() || capability < 10) {
    return std::nullopt;
  }
  return capability;
}

}  // namespace mxfp4
