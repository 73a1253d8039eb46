#include "formats/config/quantization_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

std::string said_value(const nlohmann::ordered_json& value) {
  return shown(value.is_string()
                   ? value.get<std::string>()
                   : value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

const nlohmann::ordered_json& member_of(const nlohmann::ordered_json& object,
                                        std::string_view key) {
  static const nlohmann::ordered_json kNull;
  const auto found = object.find(std::string(key));
  return found == object.end() ? kNull : *found;
}

bool is_falsy(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  if (value.is_number()) return value == 0;
  return value == false || value.empty();
}

bool is_the_text(const nlohmann::ordered_json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

std::string refused_value(std::string_view where, std::string_view key,
                          const nlohmann::ordered_json& value, std::string_view expected) {
  return fmt::format("{}{}{}: {}, expected {}", where, key.empty() ? "" : ".", key,
                     said_value(value), expected);
}

std::string first_refused(std::string_view where, const nlohmann::ordered_json& object,
                          const std::vector<WantedMember>& wanted) {
  for (const WantedMember& one : wanted) {
    const nlohmann::ordered_json& value = member_of(object, one.key);
    if (value != one.value) return refused_value(where, one.key, value, said_value(one.value));
  }
  return {};
}

const nlohmann::ordered_json& required_object(const nlohmann::ordered_json& parent,
                                              std::string_view where, std::string_view key) {
  const nlohmann::ordered_json& value = member_of(parent, key);
  if (!value.is_object()) throw Error::input(refused_value(where, key, value, "an object"));
  return value;
}

std::string lower_text_of(const nlohmann::ordered_json& object, std::string_view key,
                          std::string_view otherwise) {
  const nlohmann::ordered_json& value = member_of(object, key);
  std::string text(value.is_string() ? value.get_ref<const std::string&>() : otherwise);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace mxfp4
