// The fields of a model's config.json, of which some models keep most in an object inside.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mxfp4 {

// The fields of the text model, if the config has an object for it, come before the outer object's.
class ConfigFields {
 public:
  using Json = nlohmann::ordered_json;
  explicit ConfigFields(const Json& root);

  [[nodiscard]] const Json& root() const { return *root_; }
  // The text model's object; null if there is none.
  [[nodiscard]] const Json* nested() const { return nested_; }

  // Null when the key is absent or null on both levels.
  [[nodiscard]] const Json* find(std::string_view key) const;
  // Some models give a list with one entry a layer: it counts as absent unless all are the same.
  [[nodiscard]] std::optional<int64_t> size(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  // Anything but true and false counts as absent.
  [[nodiscard]] std::optional<bool> truth(std::string_view key) const;

  // Throws Error::input unless the value is a non-negative integer.
  [[nodiscard]] static int64_t to_size(const Json& value, std::string_view key);

 private:
  const Json* root_;
  const Json* nested_ = nullptr;
};

}  // namespace mxfp4
