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

// The reference's message, after the key and the value that it is about.
std::string located(std::string_view where, const json& value, std::string_view message) {
  return fmt::format("{}: {}: {}", where,
                     shown(value.dump(-1, ' ', true, json::error_handler_t::replace)), message);
}

// Collects everything that is wrong, as the reference's validation does. Only a name that is not a
// string is refused at once.
class Validation {
 public:
  explicit Validation(const RuleSet& rules) : rules_(rules) {}

  // `where`: "linear" or "moe".
  std::optional<OverrideSpec> spec(const std::string& where, const json& value) {
    if (value.is_null()) return std::nullopt;
    if (value.is_string()) return named_spec(where, value.get_ref<const std::string&>());
    if (!value.is_object()) {
      add(where, value, "Input should be a dictionary or an instance of QuantSpec");
      return std::nullopt;
    }
    OverrideSpec out;
    for (const auto& [key, member] : value.items()) {
      const std::string at = fmt::format("{}.{}", where, shown(key));
      if (key == "weight" || key == "activation") {
        (key == "weight" ? out.weight : out.activation) = name(at, member);
      } else {
        add(at, member, "Unexpected keyword argument");
      }
    }
    return out;
  }

  std::vector<std::string> ignore(const json& value) {
    std::vector<std::string> out;
    if (!value.is_array()) {
      add("ignore", value, "Input should be a valid list");
      return out;
    }
    for (const json& item : value) {
      if (item.is_string()) {
        out.push_back(item.get_ref<const std::string&>());
      } else {
        add("ignore", item, "Input should be a valid string");
      }
    }
    return out;
  }

  void add(std::string_view where, const json& value, std::string_view message) {
    messages_.push_back(located(where, value, message));
  }

  void finish() const {
    if (messages_.empty()) return;
    std::string text;
    for (const std::string& message : messages_) {
      text += fmt::format("{}{}", text.empty() ? "" : "; ", message);
    }
    throw refusal(std::move(text), "ValidationError");
  }

 private:
  std::optional<OverrideSpec> named_spec(const std::string& where, const std::string& text) {
    const OnlineShorthand* shorthand = find_shorthand(rules_, text);
    if (shorthand == nullptr) return OverrideSpec{known_name(where, text), std::nullopt};
    const std::string_view weight =
        where == "linear" ? shorthand->linear_weight : shorthand->moe_weight;
    if (weight.empty()) {
      add(where, text,
          fmt::format("Value error, online shorthand {} does not define a linear spec",
                      python_repr(text)));
      return std::nullopt;
    }
    return OverrideSpec{std::string(weight), std::nullopt};
  }

  std::optional<std::string> name(const std::string& where, const json& value) {
    if (value.is_null()) return std::nullopt;
    if (value.is_string()) return known_name(where, value.get_ref<const std::string&>());
    throw refusal(located(where, value,
                          fmt::format("expected str or QuantKey, got {}", python_type_name(value))),
                  "TypeError");
  }

  std::optional<std::string> known_name(const std::string& where, const std::string& text) {
    if (find_key_row(rules_, text) != nullptr) return text;
    std::vector<std::string_view> names;
    for (const ActivationKeyRow& row : rules_.keys) names.push_back(row.name);
    std::ranges::sort(names);
    add(where, text,
        fmt::format("Value error, unknown quantization name {}; expected one of {}",
                    python_repr(text), python_list(names)));
    return std::nullopt;
  }

  const RuleSet& rules_;
  std::vector<std::string> messages_;
};

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
  Validation validation(rules);
  const json null;
  const auto member = [&](const char* key) -> const json& {
    return value.contains(key) ? value.at(key) : null;
  };
  out.linear = validation.spec("linear", member("linear"));
  out.moe = validation.spec("moe", member("moe"));
  if (value.contains("ignore")) out.ignore = validation.ignore(value.at("ignore"));
  for (const auto& item : value.items()) {
    if (item.key() != "linear" && item.key() != "moe" && item.key() != "ignore") {
      validation.add(shown(item.key()), item.value(), "Unexpected keyword argument");
    }
  }
  validation.finish();
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
