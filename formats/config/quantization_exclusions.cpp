#include "formats/config/quantization_exclusions.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/config/quantization_members.hpp"
#include "lib/load/module_rules.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRoutedExperts = ".experts";
constexpr std::string_view kRegexMark = "re:";

// The number after "layers." in a module's path.
std::optional<int64_t> numbered_layer(std::string_view path) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = path.rfind(kLayers);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view tail = path.substr(at + kLayers.size());
  return parse_index(tail.substr(0, tail.find('.')));
}

// Reads the names of a list, or of an object's keys.
class ExclusionReader {
 public:
  // `first_only`: expert 0 decides for the layer. `by_name`: a name is the engine's name of the
  // layer's experts, and not only its number counts.
  struct Words {
    bool first_only = false;
    bool by_name = false;
  };

  ExclusionReader(Words words, std::span<const Rename> renames, Exclusions& out)
      : words_(words), renames_(renames), out_(out) {}

  // Adds the layer of whose routed experts `name` is one, or a part, or all. A draft's layers have
  // numbers of their own, and are known by name.
  void add_name(std::string_view name) {
    const size_t at = name.rfind(kRoutedExperts);
    if (at == std::string_view::npos) return;
    const size_t end = at + kRoutedExperts.size();
    const std::string_view tail = name.substr(end);
    if (!tail.empty() && tail.front() != '.') return;
    if (words_.first_only && !tail.starts_with(".0.")) return;
    const bool draft = name.substr(0, at).find("mtp.") != std::string_view::npos;
    const auto layer = draft ? std::nullopt : numbered_layer(name.substr(0, at));
    if (!draft && !layer) return;
    if (layer && !words_.by_name) {
      out_.layers.insert(*layer);
      return;
    }
    out_.modules.insert(renamed(renames_, std::string(name.substr(0, end))));
  }

  void add_list(const Json& list) {
    if (!list.is_array()) return;
    for (const Json& entry : list) {
      if (!entry.is_string()) continue;
      const std::string_view name = entry.get_ref<const std::string&>();
      out_.shared_experts =
          out_.shared_experts || name.find("shared_expert") != std::string_view::npos;
      if (name.starts_with(kRegexMark)) {
        out_.patterns.emplace_back(name.substr(kRegexMark.size()));
      } else {
        add_name(name);
      }
    }
  }

  // AutoRound names modules with their own number of bits; 16 and more are not quantized.
  void add_extra_config(const Json& modules) {
    if (!modules.is_object()) return;
    for (const auto& [name, config] : modules.items()) {
      const auto bits = config.is_object() ? config.find("bits") : config.end();
      const bool kept = bits != config.end() && bits->is_number_integer() && *bits >= 16;
      if (kept) add_name(name);
    }
  }

 private:
  Words words_;
  std::span<const Rename> renames_;
  Exclusions& out_;
};

}  // namespace

Exclusions read_exclusions(const Json& quantization, std::span<const Rename> renames) {
  Exclusions out;
  const Json& method = member_of(quantization, "quant_method");
  if (method == "quark") {
    ExclusionReader({.by_name = true}, renames, out).add_list(member_of(quantization, "exclude"));
  } else if (method == "compressed-tensors" || quantization.contains("config_groups")) {
    out.of_linears = true;
    ExclusionReader({.first_only = true, .by_name = true}, renames, out)
        .add_list(member_of(quantization, "ignore"));
  } else if (method == "auto-round" || method == "inc") {
    ExclusionReader({}, renames, out).add_extra_config(member_of(quantization, "extra_config"));
  } else if (method == "fp8" || method == "deepseek_v4_fp8") {
    const Json& ignored = member_of(quantization, "ignored_layers");
    const bool named = ignored.is_array() && !ignored.empty();
    ExclusionReader({}, renames, out)
        .add_list(named ? ignored : member_of(quantization, "modules_to_not_convert"));
  }
  return out;
}

}  // namespace mxfp4
