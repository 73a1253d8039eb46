// Typed fields of a JSON object of unknown origin, with errors that name the key. The text itself
// is parsed by strict_json.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// A view of a JSON object for field-by-field reading. Every getter throws Error::input
// "<key>: expected <type>, found <type>" or "<key>: missing". The json outlives the view.
class JsonFields {
 public:
  // `where` is the key path of this object for messages, "" at the top.
  explicit JsonFields(const nlohmann::json& value, std::string where = "");

  [[nodiscard]] bool has(std::string_view key) const;  // present and not null
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  [[nodiscard]] std::string string(std::string_view key) const;
  [[nodiscard]] std::string string_or(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] std::optional<std::string> string_or_null(std::string_view key) const;
  [[nodiscard]] int64_t integer(std::string_view key) const;  // 0 .. INT64_MAX
  [[nodiscard]] int64_t integer_or(std::string_view key, int64_t fallback) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] JsonFields object(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> strings(std::string_view key) const;
  [[nodiscard]] std::vector<int64_t> integers(std::string_view key) const;
  // The same by the type of `out`: integer, boolean or string.
  void read(std::string_view key, int64_t& out) const { out = integer(key); }
  void read(std::string_view key, bool& out) const { out = boolean(key); }
  void read(std::string_view key, std::string& out) const { out = string(key); }
  // Calls body(JsonFields) for every element of an array of objects, in order.
  void each(std::string_view key, const std::function<void(const JsonFields&)>& body) const;
  // Throws Error::input, whose key() is its path, if the object has a key that no call has asked for
  // so far, and that is not one of `others`.
  void only(std::initializer_list<std::string_view> others = {}) const;
  [[nodiscard]] const nlohmann::json& value() const { return *json_; }
  // "<where>.<key>", for messages.
  [[nodiscard]] std::string path(std::string_view key) const;
  [[noreturn]] void wrong_type(std::string_view key, std::string_view expected,
                               const nlohmann::json& found) const;

 private:
  void note(std::string_view key) const;

  const nlohmann::json* json_;
  std::string where_;
  mutable std::vector<std::string> asked_;
};

}  // namespace mxfp4
