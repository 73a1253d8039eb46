#include "formats/config/quantization_exclusions.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/config/quantization_members.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRoutedExperts = ".experts";
constexpr std::string_view kRegexMark = "re:";

// The number after "layers." in a module's path; empty for the layers of a draft.
std::optional<int64_t> numbered_layer(std::string_view path) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = path.rfind(kLayers);
  if (at == std::string_view::npos || path.substr(0, at).find("mtp.") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view tail = path.substr(at + kLayers.size());
  return parse_index(tail.substr(0, tail.find('.')));
}

// Adds the layer of whose routed experts `name` is one, or a part, or all. `first_only`: expert 0
// decides for the layer.
void add_name(std::string_view name, bool first_only, Exclusions& out) {
  const size_t at = name.rfind(kRoutedExperts);
  if (at == std::string_view::npos) return;
  const std::string_view tail = name.substr(at + kRoutedExperts.size());
  if (!tail.empty() && tail.front() != '.') return;
  if (first_only && !tail.starts_with(".0.")) return;
  const auto layer = numbered_layer(name.substr(0, at));
  if (!layer) return;
  const bool fresh = out.layers.insert(*layer).second;
  if (tail.empty()) out.by_part.erase(*layer);
  if (!tail.empty() && fresh) out.by_part.insert(*layer);
}

void add_list(const Json& list, bool first_only, Exclusions& out) {
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    if (!entry.is_string()) continue;
    const std::string_view name = entry.get_ref<const std::string&>();
    out.shared_experts = out.shared_experts || name.find("shared_expert") != std::string_view::npos;
    if (name.starts_with(kRegexMark)) {
      out.patterns.emplace_back(name.substr(kRegexMark.size()));
    } else {
      add_name(name, first_only, out);
    }
  }
}

// AutoRound names modules with their own number of bits; 16 and more are not quantized.
void add_extra_config(const Json& modules, Exclusions& out) {
  if (!modules.is_object()) return;
  for (const auto& [name, config] : modules.items()) {
    const auto bits = config.is_object() ? config.find("bits") : config.end();
    const bool kept = bits != config.end() && bits->is_number_integer() && *bits >= 16;
    if (kept) add_name(name, false, out);
  }
}

}  // namespace

Exclusions read_exclusions(const Json& quantization) {
  Exclusions out;
  const Json& method = member_of(quantization, "quant_method");
  if (method == "quark") {
    add_list(member_of(quantization, "exclude"), false, out);
  } else if (method == "compressed-tensors" || quantization.contains("config_groups")) {
    out.of_linears = true;
    add_list(member_of(quantization, "ignore"), true, out);
  } else if (method == "auto-round" || method == "inc") {
    add_extra_config(member_of(quantization, "extra_config"), out);
  } else if (method == "fp8" || method == "deepseek_v4_fp8") {
    const Json& ignored = member_of(quantization, "ignored_layers");
    const bool named = ignored.is_array() && !ignored.empty();
    add_list(named ? ignored : member_of(quantization, "modules_to_not_convert"), false, out);
  }
  return out;
}

}  // namespace mxfp4
