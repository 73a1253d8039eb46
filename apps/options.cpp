#include "apps/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/text_layout.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

json override_in(const json& members) {
  json moe;
  for (const char* name : {"activation", "weight"}) {
    const std::string key = fmt::format("{}_override", name);
    if (members.contains(key)) moe[name] = members.at(key);
  }
  return moe.is_null() ? json() : json{{"moe", moe}};
}

void RequestFlags::require_useful(const std::set<std::string>& useful, const std::string& why,
                                  const std::string& hint) const {
  for (const std::string& name : given) {
    if (useful.contains(name)) continue;
    throw Error::usage(fmt::format("{}: has no effect {}", name, why)).hint(hint);
  }
}

std::vector<std::string> RequestFlags::typed() const {
  std::vector<std::string> flags;
  const auto add = [&](const std::string& member, const std::string& value) {
    flags.push_back(fmt::format("{} {}", flag_of(member), shell_word(value)));
  };
  for (const auto& [member, value] : members.items()) {
    // No flag says these, but --quantization-config and --target.
    if (member.ends_with("_override") || member == "cuda_compiler") continue;
    if (value.is_array() && member == "libs") {
      const auto libs = value.get<std::vector<std::string>>();
      add(member, libs.empty() ? "none" : fmt::format("{}", fmt::join(libs, ",")));
    } else if (value.is_array()) {
      for (const json& part : value) add(member, text_of(part));
    } else if (value.is_object()) {
      for (const auto& [name, part] : value.items()) add(member, name + "=" + text_of(part));
    } else if (!value.is_boolean()) {
      add(member, text_of(value));
    } else if (value.get<bool>()) {
      flags.push_back(flag_of(member));
    }
  }
  const json moe = override_in(members);
  if (!moe.is_null()) add("quantization_config", moe.dump());
  if (!model_config.path.empty()) add("model_config", model_config.path.string());
  if (!target.path.empty()) add("target", target.path.string());
  return flags;
}

std::vector<std::string> RequestFlags::variables() const {
  std::vector<std::string> names;
  for (const std::string text : members.value("env", json::array())) {
    names.push_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::string flag_of(std::string member) {
  std::ranges::replace(member, '_', '-');
  return "--" + member;
}

}  // namespace mxfp4
