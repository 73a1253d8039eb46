#include "apps/known_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "apps/suggest.hpp"
#include "lib/core/error.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

std::string nearest_by_number(std::string_view name) {
  return fmt::format("the nearest is --revision {}; list revisions shows all",
                     nearest_release(name).name);
}

std::string revision_hint(const std::string& name) {
  const bool number = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  std::vector<std::string> known;  // newest first, written as the name is
  for (const Release* release : all_releases()) {
    const std::string_view text = number ? release->version : release->name;
    if (!text.empty()) known.emplace(known.begin(), text);
  }
  const std::vector<std::string> near = nearest_words(name, known);
  if (near.empty() || (number && near.size() > 1)) return nearest_by_number(name);
  return fmt::format("the nearest names: {}; list revisions shows all", fmt::join(near, ", "));
}

}  // namespace

const RuleSet& rules_named(const std::string& name) {
  if (name.empty()) return default_revision();
  try {
    return revision_by_name(name);
  } catch (Error& error) {
    error.hint(revision_hint(name));
    throw;
  }
}

const RuleSet& rules_of_engine(const std::string& version) {
  if (const Release* release = find_release(version)) return rules_of(*release);
  throw Error::usage(fmt::format("--target: the rules of vLLM {} are not known", version))
      .hint(nearest_by_number(version));
}

std::string moe_backend_hint(const RuleSet& rules, const std::string& name) {
  std::vector<std::string> known;
  for (const AliasRow& alias : rules.aliases) known.emplace_back(alias.name);
  if (name == "auto" || std::ranges::find(known, name) != known.end()) return "";
  const std::string nearest = nearest_word(name, known);
  return nearest.empty() ? "" : fmt::format("did you mean --moe-backend {}?", nearest);
}

std::vector<std::string> known_styles() {
  std::vector<std::string> names;
  names.reserve(kAllStyles.size());
  for (Style style : kAllStyles) names.emplace_back(style_name(style));
  return names;
}

}  // namespace mxfp4
