#include "lib/revisions/revisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

// An engine: its releases and commits, oldest first. The first one is whole, and each later one changes
// the rules of the one before it. Another engine is another chain, over the same kinds of rows.
using Chain = std::span<const Release* const>;

const std::array kVllm = {
    &kRelease0210, &kCommit20260518, &kRelease0220, &kRelease0221, &kRelease0230, &kRelease0240,
    &kRelease0250, &kRelease0251,    &kRelease0260, &kRelease0270, &kRelease0271, &kCommit20260817,
    &kRelease0280, &kRelease0290,    &kRelease0300, &kRelease0310, &kRelease0320, &kRelease0330,
};

// Rule sets that were built, in the order of the chain.
struct Built {
  std::mutex mutex;
  std::vector<std::unique_ptr<const RuleSet>> rules;
};

// "0.33.1rc2" is {0, 33, 1}; text without a number is all zeros.
std::array<int64_t, 3> version_numbers(std::string_view name) {
  std::array<int64_t, 3> numbers{};
  size_t at = name.find_first_of("0123456789");
  for (int64_t& number : numbers) {
    while (at < name.size() && is_digit(name[at]) && number < 100000) {
      number = number * 10 + (name[at++] - '0');
    }
    if (at >= name.size() || name[at] != '.') break;
    ++at;
  }
  return numbers;
}

std::string_view release_number(std::string_view name) {
  if (name.starts_with("vllm-")) name.remove_prefix(5);
  if (name.starts_with('v')) name.remove_prefix(1);
  return name;
}

size_t index_of(Chain chain, const Release& release) {
  const auto found = std::ranges::find(chain, &release);
  if (found == chain.end()) throw Error::internal("a release is not in the list of releases");
  return static_cast<size_t>(found - chain.begin());
}

// `before`: the rules of the release before; null for the first.
RuleSet build(const Release& release, const RuleSet* before) {
  RuleSet rules;
  if (before != nullptr) rules = *before;
  if (release.apply != nullptr) release.apply(rules);
  rules.name = release.name;
  rules.commit = release.commit;
  rules.pins = release.pins;
  return rules;
}

const RuleSet& rules_in(Chain chain, const Release& release, Built& built) {
  const size_t index = index_of(chain, release);
  const std::lock_guard lock(built.mutex);
  while (built.rules.size() <= index) {
    const RuleSet* before = built.rules.empty() ? nullptr : built.rules.back().get();
    const Release& next = *chain[built.rules.size()];
    built.rules.push_back(std::make_unique<const RuleSet>(build(next, before)));
  }
  return *built.rules[index];
}

std::vector<const Layout*> collect_layouts() {
  std::vector<const Layout*> layouts;
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) {
      if (row.layout != nullptr) layouts.push_back(row.layout);
    }
  }
  std::ranges::sort(layouts, {}, &Layout::id);
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

}  // namespace

std::span<const Release* const> all_releases() { return kVllm; }

const Release* release_before(const Release& release) {
  const size_t index = index_of(kVllm, release);
  return index == 0 ? nullptr : kVllm[index - 1];
}

const Release& newest_release() {
  const auto newest = std::find_if(kVllm.rbegin(), kVllm.rend(),
                                   [](const Release* r) { return !r->version.empty(); });
  return newest == kVllm.rend() ? *kVllm.front() : **newest;
}

const Release* find_release(std::string_view name) {
  std::string_view version = release_number(name);
  version = version.substr(0, version.find('+'));         // "+cu129" names a build
  const std::string first = std::string(version) + ".0";  // "0.33" means "0.33.0"
  for (const Release* release : kVllm) {
    if (release->name == name) return release;
    if (release->version.empty()) continue;
    if (release->version == version || release->version == first) return release;
  }
  return nullptr;
}

bool is_newer_release(std::string_view name) {
  const std::string_view number = release_number(name);
  const std::array<int64_t, 3> asked = version_numbers(number);
  constexpr int64_t kYears = 1000;  // names of commits begin with a year
  return !number.empty() && is_digit(number.front()) && asked[0] < kYears &&
         asked > version_numbers(newest_release().version);
}

const Release& nearest_release(std::string_view name) {
  const std::array<int64_t, 3> wanted = version_numbers(name);
  const Release* nearest = nullptr;
  for (const Release* release : kVllm) {
    if (release->version.empty()) continue;
    // The last one that is not newer; without one, the oldest.
    if (nearest == nullptr || version_numbers(release->version) <= wanted) nearest = release;
  }
  const bool known_kind = wanted[0] == 0 && wanted[1] != 0;
  return nearest == nullptr || (!known_kind && wanted[0] == 0) ? newest_release() : *nearest;
}

const RuleSet& rules_of(const Release& release) {
  static Built built;
  return rules_in(kVllm, release, built);
}

std::vector<const RuleSet*> all_revisions() {
  std::vector<const RuleSet*> all;
  all.reserve(kVllm.size());
  for (const Release* release : kVllm) all.push_back(&rules_of(*release));
  return all;
}

const RuleSet& default_revision() { return rules_of(newest_release()); }

const RuleSet& revision_by_name(std::string_view name) {
  if (const Release* release = find_release(name)) return rules_of(*release);
  throw Error::usage(fmt::format("unknown revision '{}'", name))
      .hint(fmt::format("the nearest is {}", nearest_release(name).name));
}

std::span<const Layout* const> all_layouts() {
  static const std::vector<const Layout*> kLayouts = collect_layouts();
  return kLayouts;
}

const Layout* layout_by_id(std::string_view id) {
  for (const Layout* layout : all_layouts()) {
    if (layout->id == id) return layout;
  }
  return nullptr;
}

}  // namespace mxfp4
