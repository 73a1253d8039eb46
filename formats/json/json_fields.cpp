#include "formats/json/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_type(const std::string& path, std::string_view expected,
                              const json& found) {
  throw Error::input(fmt::format("{}{}expected {}, found {}", path, path.empty() ? "" : ": ",
                                 expected, found.type_name()));
}

int64_t integer_value(const json& value, const std::string& path) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(INT64_MAX)) return static_cast<int64_t>(number);
  }
  refuse_type(path, "a non-negative integer of 63 bits", value);
}

}  // namespace

JsonFields::JsonFields(const json& value, std::string where)
    : json_(&value), where_(std::move(where)) {
  if (!value.is_object()) refuse_type(where_, "a JSON object", value);
}

std::string JsonFields::path(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

void JsonFields::note(std::string_view key) const {
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.emplace_back(key);
}

bool JsonFields::has(std::string_view key) const {
  note(key);
  const auto found = json_->find(key);
  return found != json_->end() && !found->is_null();
}

const nlohmann::json& JsonFields::at(std::string_view key) const {
  note(key);
  const auto found = json_->find(key);
  if (found == json_->end()) throw Error::input(fmt::format("{}: missing", path(key)));
  return *found;
}

std::string JsonFields::string(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_string()) wrong_type(key, "a string", value);
  return value.get<std::string>();
}

std::string JsonFields::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

std::optional<std::string> JsonFields::string_or_null(std::string_view key) const {
  const json& value = at(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) wrong_type(key, "a string or null", value);
  return value.get<std::string>();
}

int64_t JsonFields::integer(std::string_view key) const {
  return integer_value(at(key), path(key));
}

int64_t JsonFields::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

bool JsonFields::boolean(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_boolean()) wrong_type(key, "true or false", value);
  return value.get<bool>();
}

JsonFields JsonFields::object(std::string_view key) const { return JsonFields(at(key), path(key)); }

std::vector<std::string> JsonFields::strings(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_array()) wrong_type(key, "an array", value);
  std::vector<std::string> out;
  for (const json& item : value) {
    if (!item.is_string()) wrong_type(key, "an array of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<int64_t> JsonFields::integers(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_array()) wrong_type(key, "an array", value);
  std::vector<int64_t> out;
  for (const json& item : value) out.push_back(integer_value(item, path(key)));
  return out;
}

void JsonFields::each(std::string_view key,
                      const std::function<void(const JsonFields&)>& body) const {
  const json& value = at(key);
  if (!value.is_array()) wrong_type(key, "an array", value);
  for (size_t i = 0; i < value.size(); ++i) {
    body(JsonFields(value[i], fmt::format("{}[{}]", path(key), i)));
  }
}

void JsonFields::only(std::initializer_list<std::string_view> others) const {
  for (const std::string_view other : others) note(other);
  for (const auto& item : json_->items()) {
    if (std::ranges::find(asked_, item.key()) == asked_.end()) {
      throw Error::input(fmt::format("unknown key, expected {}", fmt::join(asked_, ", ")))
          .at_key(path(shown(item.key())));
    }
  }
}

void JsonFields::wrong_type(std::string_view key, std::string_view expected,
                            const json& found) const {
  refuse_type(path(key), expected, found);
}

}  // namespace mxfp4
