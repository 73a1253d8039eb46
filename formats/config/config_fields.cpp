#include "formats/config/config_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

const Json* object_in(const Json& parent, const char* key) {
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object() ? &*found : nullptr;
}

// vLLM 0.33.0, transformers_utils/config.py: llm_config is text_config by another name, and an omni
// model's lies in its thinker_config; configs/deepseek_vl2.py: language_config.
const Json* text_model(const Json& root) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (const Json* found = object_in(root, key)) return found;
  }
  const Json* thinker = object_in(root, "thinker_config");
  return thinker == nullptr ? nullptr : object_in(*thinker, "text_config");
}

}  // namespace

ConfigFields::ConfigFields(const Json& root) : root_(&root), nested_(text_model(root)) {}

const Json* ConfigFields::find(std::string_view key) const {
  for (const Json* object : {nested_, root_}) {
    if (object == nullptr) continue;
    const auto found = object->find(std::string(key));
    if (found != object->end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

std::optional<int64_t> ConfigFields::size(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_array()) {
    return value == nullptr ? std::nullopt : std::optional(to_size(*value, key));
  }
  const auto other = [&](const Json& entry) { return entry != value->front(); };
  if (value->empty() || std::ranges::any_of(*value, other)) return std::nullopt;
  return value->front().is_number_unsigned() ? std::optional(to_size(value->front(), key))
                                             : std::nullopt;
}

std::string ConfigFields::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    throw Error::input(fmt::format("{}: expected a string, found {}", key, value->type_name()));
  }
  return value->get<std::string>();
}

std::optional<bool> ConfigFields::truth(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

int64_t ConfigFields::to_size(const Json& value, std::string_view key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
    throw Error::input(
        fmt::format("{}: {}, expected a non-negative integer", key,
                    shown(value.dump(-1, ' ', false, Json::error_handler_t::replace))));
  }
  return value.get<int64_t>();
}

}  // namespace mxfp4
