// Reads JSON of untrusted size and shape: nesting is bounded, every member is asked for by name and
// type, and what nobody asked for is an error. Errors are Error::input and name the key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// Throws Error::input for malformed text or nesting deeper than 64.
[[nodiscard]] nlohmann::json parse_json(std::string_view text);

// What Python calls the value's type: "str", "int", "list", ...
[[nodiscard]] std::string_view python_type_name(const nlohmann::json& value);

// The members of one object. Usage:
//   JsonObject object(value, "parallel");
//   object.read("tp", config.tp_size);
//   object.finish();
class JsonObject {
 public:
  // Throws when `value` is not an object. `place` stands in front of the keys in messages.
  JsonObject(const nlohmann::json& value, std::string place);

  // True when the member was there. A member of another type throws; the optional forms take null
  // as absent.
  bool read(std::string_view key, std::string& out);
  bool read(std::string_view key, bool& out);
  bool read(std::string_view key, int64_t& out);
  bool read(std::string_view key, std::optional<std::string>& out);
  bool read(std::string_view key, std::optional<int64_t>& out);
  // Null when absent.
  [[nodiscard]] const nlohmann::json* find(std::string_view key);

  // Throws when `key` was not there.
  template <class Value>
  void require(std::string_view key, Value& out) {
    if (!read(key, out)) missing(key);
  }
  // Throws for a member that was not asked for.
  void finish() const;

  [[noreturn]] void wrong_type(std::string_view key, std::string_view expected,
                               const nlohmann::json& found) const;
  [[noreturn]] void missing(std::string_view key) const;

 private:
  [[nodiscard]] std::string full_key(std::string_view key) const;

  const nlohmann::json& value_;
  std::string place_;
  std::vector<std::string_view> known_;
};

}  // namespace mxfp4
