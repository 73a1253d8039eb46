#include "formats/decision/also_serves.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/decision/recipes.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// The request as asked of these rules, with this --moe-backend: every rank's slice, and no data
// is read.
std::optional<Conversion> asked_of(const RuleSet& rules, const std::string& backend,
                                   ConversionRequest request, const OpenedCheckpoint& checkpoint) {
  request.rules = &rules;
  request.backend.reset();
  request.rank.reset();
  request.deployment.moe_backend = backend;
  request.stop_at_loaded = true;
  try {
    Conversion there = decide_conversion(request, &checkpoint);
    if (there.refusal || !there.stops.empty() || there.row == nullptr) return std::nullopt;
    return there;
  } catch (const Error&) {
    return std::nullopt;  // a name that these rules do not know
  }
}

std::vector<std::string> names_of_backends(const RuleSet& rules) {
  std::vector<std::string> names{"auto"};
  for (const AliasRow& alias : rules.aliases) names.emplace_back(alias.name);
  return names;
}

}  // namespace

std::map<std::string, std::string> also_serves(const ConversionRequest& request,
                                               const Conversion& conversion,
                                               const OpenedCheckpoint& checkpoint) {
  std::map<std::string, std::string> found;
  if (conversion.refusal || conversion.layout == nullptr || conversion.caller == nullptr) {
    return found;
  }
  // The same rules with every rank's slice.
  ConversionRequest own = request;
  own.rank.reset();
  own.stop_at_loaded = true;
  const Conversion here = decide_conversion(own, &checkpoint);
  if (here.refusal) return found;
  const auto recipes = [&](Conversion decided) {
    decided.layout =
        decided.row->layout;  // the question stopped before it, so that no data is read
    return recipes_of(decided, checkpoint.model);
  };
  const std::vector<Recipe> ours = recipes(here);
  const auto takes = [&](const Conversion& there) {
    return there.decision.backend == here.decision.backend && there.family == here.family &&
           there.row->layout == conversion.layout && recipes(there) == ours;
  };
  for (const Release* release : all_releases()) {
    if (release->engine() == conversion.rules->engine || release->version().empty()) continue;
    const RuleSet& rules = rules_of(*release);
    // Without such a row no name leads to the layout.
    const bool has_layout = std::ranges::any_of(rules.layouts, [&](const LayoutRow& row) {
      return row.backend == *here.decision.backend && row.layout == conversion.layout;
    });
    if (!has_layout) continue;
    for (const std::string& name : names_of_backends(rules)) {
      const auto there = asked_of(rules, name, request, checkpoint);
      if (!there || !takes(*there)) continue;
      found.emplace(release->name, name);
      break;
    }
  }
  return found;
}

}  // namespace mxfp4
