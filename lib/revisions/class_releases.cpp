#include "lib/revisions/class_releases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/text.hpp"
#include "lib/oracle/model_classes.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

bool has_class(const RuleSet& rules, std::string_view architecture) {
  return std::ranges::find(rules.model_classes, architecture) != rules.model_classes.end();
}

// The first release that has the class; null for a class that no release lacks.
const Release* first_with(Engine engine, std::string_view architecture) {
  const auto releases = releases_of(engine);
  const auto found = std::ranges::find_if(releases, [&](const Release* release) {
    return !release->version.empty() && has_class(rules_of(*release), architecture);
  });
  return found == releases.end() ? nullptr : *found;
}

}  // namespace

std::string missing_class_warning(const RuleSet& rules, const ModelConfig& config) {
  const Release* release = find_release(rules.name);
  if (release == nullptr || release->version.empty()) return {};
  const Release* first = nullptr;
  for (const std::string& name : config.architectures) {
    const Release* with = first_with(rules.engine, name);
    // A class that no release lacks, or one that is not known, which may be the user's own.
    if (with == nullptr || has_class(rules, name)) return {};
    if (first == nullptr) first = with;
  }
  if (first == nullptr) return {};
  return fmt::format(
      "{} has no model class {}, which {} has first: it serves this model only with a class from "
      "elsewhere, such as a plug-in",
      rules.name, shown(config.architectures.front()), first->name);
}

}  // namespace mxfp4
