#include "formats/config/quantization_override.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "formats/json/python_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

constexpr int64_t kMaxFileBytes = 1 << 20;

Error refusal(std::string message, std::string type) {
  return Error::input(std::move(message)).reference_type(std::move(type));
}

const OnlineShorthand* find_shorthand(const RuleSet& rules, std::string_view name) {
  const auto row = std::ranges::find(rules.online_shorthands, name, &OnlineShorthand::name);
  return row == rules.online_shorthands.end() ? nullptr : &*row;
}

// Throws the reference's message, after the key and the value that it is about.
[[noreturn]] void refuse(std::string_view where, const json& value, std::string_view message,
                         std::string type = "ValidationError") {
  throw refusal(
      fmt::format("{}: {}: {}", where,
                  shown(value.dump(-1, ' ', true, json::error_handler_t::replace)), message),
      std::move(type));
}

std::string known_name(const RuleSet& rules, std::string_view where, const std::string& text) {
  if (find_key_row(rules, text) != nullptr) return text;
  std::vector<std::string_view> names;
  for (const ActivationKeyRow& row : rules.keys) names.push_back(row.name);
  std::ranges::sort(names);
  refuse(where, text,
         fmt::format("Value error, unknown quantization name {}; expected one of {}",
                     python_repr(text), python_list(names)));
}

std::optional<std::string> read_name(const RuleSet& rules, std::string_view where,
                                     const json& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return known_name(rules, where, value.get_ref<const std::string&>());
  refuse(where, value, fmt::format("expected str or QuantKey, got {}", python_type_name(value)),
         "TypeError");
}

// `where`: "linear" or "moe".
std::optional<OverrideSpec> read_spec(const RuleSet& rules, const std::string& where,
                                      const json& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const OnlineShorthand* shorthand = find_shorthand(rules, text);
    if (shorthand == nullptr) return OverrideSpec{known_name(rules, where, text), std::nullopt};
    const std::string_view weight =
        where == "linear" ? shorthand->linear_weight : shorthand->moe_weight;
    if (!weight.empty()) return OverrideSpec{std::string(weight), std::nullopt};
    refuse(where, value,
           fmt::format("Value error, online shorthand {} does not define a linear spec",
                       python_repr(text)));
  }
  if (!value.is_object()) {
    refuse(where, value, "Input should be a dictionary or an instance of QuantSpec");
  }
  OverrideSpec out;
  for (const auto& [key, member] : value.items()) {
    const std::string at = fmt::format("{}.{}", where, shown(key));
    if (key != "weight" && key != "activation") refuse(at, member, "Unexpected keyword argument");
    (key == "weight" ? out.weight : out.activation) = read_name(rules, at, member);
  }
  return out;
}

std::vector<std::string> read_ignore(const json& value) {
  if (!value.is_array()) refuse("ignore", value, "Input should be a valid list");
  std::vector<std::string> out;
  for (const json& item : value) {
    if (!item.is_string()) refuse("ignore", item, "Input should be a valid string");
    out.push_back(item.get_ref<const std::string&>());
  }
  return out;
}

// Throws unless the engine accepts a configuration beside this value of --quantization: "online" or
// a shorthand, or none at all in releases that have the user's override.
void require_online(const RuleSet& rules, std::string_view quantization) {
  std::vector<std::string_view> allowed = {"online"};
  for (const OnlineShorthand& row : rules.online_shorthands) allowed.push_back(row.name);
  const bool given = !quantization.empty();
  if (given ? std::ranges::find(allowed, quantization) != allowed.end() : rules.takes_override) {
    return;
  }
  std::ranges::sort(allowed);
  throw refusal(fmt::format("quantization_config is only supported when quantization is one of {}, "
                            "got quantization={}",
                            python_list(allowed), given ? python_repr(quantization) : "None"),
                "ValueError");
}

QuantizationOverride validate(const RuleSet& rules, const json& value) {
  if (!value.is_object()) {
    throw Error::input(fmt::format("expected a JSON object, found {}", value.type_name()));
  }
  QuantizationOverride out;
  if (value.contains("linear")) out.linear = read_spec(rules, "linear", value.at("linear"));
  if (value.contains("moe")) out.moe = read_spec(rules, "moe", value.at("moe"));
  if (value.contains("ignore")) out.ignore = read_ignore(value.at("ignore"));
  for (const auto& [key, member] : value.items()) {
    if (key != "linear" && key != "moe" && key != "ignore") {
      refuse(shown(key), member, "Unexpected keyword argument");
    }
  }
  return out;
}

std::optional<OverrideSpec> weight_spec(std::string_view weight) {
  if (weight.empty()) return std::nullopt;
  return OverrideSpec{std::string(weight), std::nullopt};
}

}  // namespace

std::optional<QuantizationOverride> parse_quantization_config(const RuleSet& rules,
                                                              std::string_view json_text,
                                                              std::string_view quantization) {
  const json value = json_text.empty() ? json() : parse_python_json(json_text);
  std::optional<QuantizationOverride> out;
  if (!value.is_null()) {
    if (!rules.quantization_config_anywhere) require_online(rules, quantization);
    out = validate(rules, value);
  }
  if (const OnlineShorthand* shorthand = find_shorthand(rules, quantization)) {
    if (!out) out.emplace();
    if (!out->linear) out->linear = weight_spec(shorthand->linear_weight);
    if (!out->moe) out->moe = weight_spec(shorthand->moe_weight);
  }
  return out;
}

std::string quantization_config_text(std::string_view flag) {
  const size_t first = flag.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (flag[first] == '{' || flag.substr(first) == "null")) {
    return std::string(flag);
  }
  const std::filesystem::path path(flag);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw Error::input("neither a JSON object nor a file").in_file(shown(flag));
  }
  return in_file(flag, [&] { return read_text_stream(path, kMaxFileBytes); });
}

std::optional<QuantizationOverride> read_quantization_config(const RuleSet& rules,
                                                             std::string_view flag) {
  try {
    const std::string text = quantization_config_text(flag);
    if (text == flag) return parse_quantization_config(rules, text);
    return in_file(flag, [&] { return parse_quantization_config(rules, text); });
  } catch (Error& error) {
    error.at_key("--quantization-config");
    throw;
  }
}

}  // namespace mxfp4
