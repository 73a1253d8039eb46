#include "apps/options.hpp"

#include <fmt/format.h>

#include "apps/text_layout.hpp"
#include "formats/config/deployment_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxFlagFileBytes = int64_t{16} << 20;

}  // namespace

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

const std::string& FlagFile::text() const {
  if (!text_) {
    text_ = in_file(path_.string(), [&] { return read_text_stream(path_, kMaxFlagFileBytes); });
  }
  return *text_;
}

const DeploymentFacts& TargetFile::facts() const {
  if (facts_) return *facts_;
  if (file_.empty()) return facts_.emplace();
  const std::string& text = file_.text();
  return facts_.emplace(in_file(path().string(), [&] { return parse_target(text); }));
}

}  // namespace mxfp4
