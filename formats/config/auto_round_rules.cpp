// AutoRound's quantization config (vLLM: INC).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using AutoRoundJson = nlohmann::ordered_json;

// A key with one of these is a regular expression to the engine.
constexpr std::string_view kRegexSigns = "*+?^$()[]{}|\\";

// Empty when the weights that `spec` describes are MXFP4; what it lacks, `root` says.
std::string bits_refusal(const AutoRoundJson& spec, const AutoRoundJson& root,
                         const std::string& where) {
  const auto value = [&](const char* key) -> const AutoRoundJson& {
    const AutoRoundJson& own = member_of(spec, key);
    return own.is_null() ? member_of(root, key) : own;
  };
  if (value("bits") != 4) return refused_value(where, "bits", value("bits"), "4");
  if (value("group_size") != 32) {
    return refused_value(where, "group_size", value("group_size"), "32");
  }
  return {};
}

// The path itself, or its end behind a dot, as a regular expression.
std::string end_of_path(std::string_view name) {
  std::string pattern = "(^|\\.)";
  for (const char c : name) {
    if (c == '.') pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

// Names come before regular expressions; both are matched with the path of a layer's experts.
void add_extra_rules(const AutoRoundJson& modules, const QuantizationJson& text,
                     Quantization& method) {
  if (!modules.is_object()) return;
  std::vector<ModuleQuantization> searches;
  for (const auto& [name, spec] : modules.items()) {
    const bool regex = name.find_first_of(kRegexSigns) != std::string::npos;
    if (!spec.is_object() || (!regex && !name.ends_with("experts"))) continue;
    ModuleQuantization rule;
    rule.kind = PatternKind::kSearch;
    rule.pattern = regex ? name : end_of_path(name);
    rule.refusal = bits_refusal(spec, *text.quantization,
                                fmt::format("{}.extra_config.{}", text.where, shown(name)));
    (regex ? searches : method.rules).push_back(std::move(rule));
  }
  method.rules.insert(method.rules.end(), searches.begin(), searches.end());
}

// The rule for modules that no entry of extra_config names. Where blocks are named, others are not
// quantized.
void add_blocks(const QuantizationJson& text, ModuleQuantization general, Quantization& method) {
  // The second key is read where the first is not there.
  const char* key = text.quantization->contains("block_name_to_quantize") ? "block_name_to_quantize"
                                                                          : "to_quant_block_names";
  const AutoRoundJson& given = member_of(*text.quantization, key);
  std::vector<std::string> blocks;
  if (given.is_string()) {
    std::istringstream listed(given.get<std::string>());
    for (std::string block; std::getline(listed, block, ',');) blocks.push_back(block);
  } else if (given.is_array()) {
    blocks = given.get<std::vector<std::string>>();
  }
  if (!blocks.empty()) {
    ModuleQuantization inside = general;
    inside.kind = PatternKind::kBeginning;
    for (std::string& block : blocks) {
      inside.pattern = std::move(block);
      method.rules.push_back(inside);
    }
    general.refusal = refused_value(text.where, key, given, "the experts among the blocks");
  }
  method.rules.push_back(std::move(general));
}

}  // namespace

void read_auto_round(const QuantizationJson& text, Quantization& method) {
  const AutoRoundJson& root = *text.quantization;
  const AutoRoundJson& type = member_of(root, "data_type");
  if (!type.is_string() || type.get_ref<const std::string&>().find("mx_fp") == std::string::npos) {
    throw Error::input(
        refused_value(text.where, "data_type", type, "mx_fp: other weights are not MXFP4"));
  }
  const AutoRoundJson& packing = member_of(root, "packing_format");
  if (!packing.is_null() && packing != "auto_round:llm_compressor") {
    throw Error::input(
        refused_value(text.where, "packing_format", packing, "auto_round:llm_compressor"));
  }
  add_extra_rules(member_of(root, "extra_config"), text, method);
  ModuleQuantization general;
  general.kind = PatternKind::kAny;
  general.refusal = bits_refusal(root, root, text.where);
  const bool none = std::ranges::all_of(
      method.rules, [](const ModuleQuantization& rule) { return !rule.refusal.empty(); });
  if (none && !general.refusal.empty()) throw Error::input(general.refusal);
  add_blocks(text, std::move(general), method);
}

}  // namespace mxfp4
