#include "formats/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/strict_json.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int kMaxDepth = 64;

// The parser keeps no recursion, but what it builds is walked recursively later.
void check_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) {
        throw Error::input(fmt::format("JSON nested deeper than {} levels", kMaxDepth));
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  check_depth(text);
  // The parser below would stop there, whatever follows.
  if (text.find('\0') != std::string_view::npos) check_json_text(text);
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception& error) {
    check_json_text(text);  // its message would repeat bytes that are not UTF-8
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the tag.
    std::string_view what = error.what();
    if (const size_t tag = what.find("] "); tag != std::string_view::npos)
      what.remove_prefix(tag + 2);
    throw Error::input(fmt::format("not valid JSON: {}", what));
  }
}

std::string_view python_type_name(const nlohmann::json& value) {
  if (value.is_null()) return "NoneType";
  if (value.is_boolean()) return "bool";
  if (value.is_number_integer()) return "int";
  if (value.is_number()) return "float";
  if (value.is_string()) return "str";
  return value.is_array() ? "list" : "dict";
}

JsonObject::JsonObject(const nlohmann::json& value, std::string place)
    : value_(value), place_(std::move(place)) {
  if (value.is_object()) return;
  throw Error::input(fmt::format("{}{}expected a JSON object, found {}", place_,
                                 place_.empty() ? "" : ": ", value.type_name()));
}

const nlohmann::json* JsonObject::find(std::string_view key) {
  const auto found = value_.find(key);
  if (found == value_.end()) return nullptr;
  const std::string_view name = found.key();
  if (std::ranges::find(known_, name) == known_.end()) known_.push_back(name);
  return &*found;
}

bool JsonObject::read(std::string_view key, std::string& out) {
  const nlohmann::json* member = find(key);
  if (member == nullptr) return false;
  if (!member->is_string()) wrong_type(key, "a string", *member);
  out = member->get_ref<const std::string&>();
  return true;
}

bool JsonObject::read(std::string_view key, bool& out) {
  const nlohmann::json* member = find(key);
  if (member == nullptr) return false;
  if (!member->is_boolean()) wrong_type(key, "true or false", *member);
  out = member->get<bool>();
  return true;
}

bool JsonObject::read(std::string_view key, int64_t& out) {
  const nlohmann::json* member = find(key);
  if (member == nullptr) return false;
  const bool fits = member->is_number_integer() &&
                    (!member->is_number_unsigned() || member->get<uint64_t>() <= INT64_MAX);
  if (!fits) wrong_type(key, "a whole number", *member);
  out = member->get<int64_t>();
  return true;
}

bool JsonObject::read(std::string_view key, std::optional<std::string>& out) {
  const nlohmann::json* member = find(key);
  if (member == nullptr) return false;
  out.reset();
  if (member->is_null()) return true;
  if (!member->is_string()) wrong_type(key, "a string or null", *member);
  out = member->get_ref<const std::string&>();
  return true;
}

bool JsonObject::read(std::string_view key, std::optional<int64_t>& out) {
  const nlohmann::json* member = find(key);
  if (member == nullptr) return false;
  out.reset();
  if (member->is_null()) return true;
  int64_t value = 0;
  read(key, value);
  out = value;
  return true;
}

void JsonObject::finish() const {
  if (known_.size() == value_.size()) return;
  for (const auto& item : value_.items()) {
    if (std::ranges::find(known_, item.key()) != known_.end()) continue;
    throw Error::input(fmt::format("{}: unknown key", full_key(item.key())));
  }
}

void JsonObject::wrong_type(std::string_view key, std::string_view expected,
                            const nlohmann::json& found) const {
  throw Error::input(
      fmt::format("{}: expected {}, found {}", full_key(key), expected, found.type_name()));
}

void JsonObject::missing(std::string_view key) const {
  throw Error::input(fmt::format("{}: missing", full_key(key)));
}

std::string JsonObject::full_key(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

}  // namespace mxfp4
