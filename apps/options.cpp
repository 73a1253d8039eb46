#include "apps/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/text_layout.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
std::vector<std::string> as_typed(const std::vector<GivenFlag>& given) {
  std::vector<std::string> out;
  for (const GivenFlag& flag : given) {
    if (!flag.name.starts_with('-')) continue;
    if (flag.values.empty()) out.push_back(flag.name);
    for (const std::string& value : flag.values) {
      out.push_back(fmt::format("{} {}", flag.name, shell_word(value)));
    }
  }
  return out;
}

void require_useful(const std::vector<GivenFlag>& given, const std::set<std::string>& useful,
                    const std::string& why, const std::string& hint) {
  for (const GivenFlag& flag : given) {
    if (!useful.contains(flag.name)) {
      throw Error::usage(fmt::format("{}: has no effect {}", flag.name, why)).hint(hint);
    }
  }
}

std::vector<std::string> RequestFlags::variables() const {
  std::vector<std::string> names;
  for (const std::string text : members.value("env", nlohmann::json::array())) {
    names.push_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::string flag_of(std::string member) {
  std::ranges::replace(member, '_', '-');
  return "--" + member;
}

}  // namespace mxfp4
