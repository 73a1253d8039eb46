#include "apps/asked_flags.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace mxfp4 {
namespace {

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The engine's object in place of the two texts that were read out of it.
void add_override(const nlohmann::json& asked, std::vector<GivenFlag>& flags) {
  nlohmann::json moe;
  for (const auto& [key, name] :
       {std::pair("activation_override", "activation"), std::pair("weight_override", "weight")}) {
    if (asked.contains(key)) moe[name] = asked.at(key);
  }
  if (!moe.is_null()) {
    flags.push_back({"--quantization-config", {nlohmann::json{{"moe", moe}}.dump()}});
  }
}

}  // namespace

std::vector<GivenFlag> asked_flags(std::string_view asked) {
  const auto object = nlohmann::json::parse(asked);
  std::vector<GivenFlag> flags;
  for (const auto& [key, value] : object.items()) {
    // The compiler has no flag: --target says it.
    if (key.ends_with("_override") || key == "cuda_compiler") continue;
    GivenFlag flag{flag_of(key), {}};
    if (value.is_object()) {
      for (const auto& [name, part] : value.items()) {
        flags.push_back({flag.name, {name + "=" + text_of(part)}});
      }
      continue;
    }
    if (key == "no_lib") {
      for (const auto& part : value) flags.push_back({flag.name, {text_of(part)}});
      continue;
    }
    if (value.is_array()) {
      std::string list;
      for (const auto& part : value) list += (list.empty() ? "" : ",") + text_of(part);
      flag.values.push_back(list.empty() ? "none" : list);
    } else if (!value.is_boolean()) {
      flag.values.push_back(text_of(value));
    } else if (!value.get<bool>()) {
      continue;
    }
    flags.push_back(std::move(flag));
  }
  add_override(object, flags);
  return flags;
}

}  // namespace mxfp4
