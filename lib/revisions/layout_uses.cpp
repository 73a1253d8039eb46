#include "lib/revisions/layout_uses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// One backend's rows that are equal but for the release.
struct Found {
  Backend backend;
  std::optional<Family> family;
  std::string_view when;
  std::vector<bool> in_release;  // by releases_of() its engine
};

std::string_view short_name(const Release& release) {
  return release.version().empty() ? release.name : release.version();
}

// "0.21.0, 0.23.0 to 0.24.0, from 0.29.0 on"; empty: in all.
std::string releases_text(Engine engine, const std::vector<bool>& in_release) {
  const auto releases = releases_of(engine);
  std::vector<std::string> parts;
  for (size_t first = 0; first < in_release.size(); ++first) {
    if (!in_release[first]) continue;
    size_t last = first;
    while (last + 1 < in_release.size() && in_release[last + 1]) ++last;
    const bool to_the_end = last + 1 == in_release.size();
    if (first == 0 && to_the_end) return "";
    const std::string_view from = short_name(*releases[first]);
    parts.push_back(to_the_end      ? fmt::format("from {} on", from)
                    : first == last ? std::string(from)
                                    : fmt::format("{} to {}", from, short_name(*releases[last])));
    first = last;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<Found> rows_of(Engine engine, const Layout& layout) {
  std::vector<Found> found;
  const auto revisions = releases_of(engine);
  for (size_t at = 0; at < revisions.size(); ++at) {
    const RuleSet& rules = rules_of(*revisions[at]);
    for (const LayoutRow& row : rules.layouts) {
      if (row.layout != &layout) continue;
      const std::string_view when = condition_words(rules, row);
      auto same = std::ranges::find_if(found, [&](const Found& f) {
        return f.backend == row.backend && f.family == row.family && f.when == when;
      });
      if (same == found.end()) {
        found.push_back({row.backend, row.family, when, std::vector<bool>(revisions.size())});
        same = found.end() - 1;
      }
      same->in_release[at] = true;
    }
  }
  return found;
}

}  // namespace

std::string_view condition_words(const RuleSet& rules, const LayoutRow& row) {
  if (!row.when.text.empty()) return row.when.text;
  for (const LayoutRow& earlier : rules.layouts) {
    if (&earlier == &row) break;
    if (earlier.backend == row.backend && earlier.family == row.family) return "otherwise";
  }
  return find_model_backend(rules, row.backend) == nullptr ? "" : "chosen by the model";
}

std::vector<LayoutUse> layout_uses(const Layout& layout) {
  std::vector<LayoutUse> uses;
  for (const Engine engine : {Engine::kVllm, Engine::kSglang}) {
    for (const Found& row : rows_of(engine, layout)) {
      LayoutUse use{{row.backend},
                    row.family,
                    std::string(row.when),
                    releases_text(engine, row.in_release),
                    engine};
      const auto same = std::ranges::find_if(uses, [&](const LayoutUse& u) {
        return u.engine == use.engine && u.family == use.family && u.when == use.when &&
               u.releases == use.releases;
      });
      if (same == uses.end()) {
        uses.push_back(std::move(use));
      } else {
        same->backends.push_back(row.backend);
      }
    }
  }
  return uses;
}

std::string layout_use_text(const LayoutUse& use) {
  std::vector<std::string_view> names;
  for (Backend backend : use.backends) names.push_back(backend_name(backend));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (use.family) text += fmt::format(" ({})", family_name(*use.family));
  if (!use.when.empty()) text += fmt::format(", {}", use.when);
  if (use.engine != Engine::kVllm) text += fmt::format(", {}", engine_title(use.engine));
  if (!use.releases.empty()) text += fmt::format(": {}", use.releases);
  return text;
}

}  // namespace mxfp4
