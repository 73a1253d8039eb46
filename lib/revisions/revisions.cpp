#include "lib/revisions/revisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Chain = std::span<const Release* const>;

// Each engine's chain in order of time, one engine behind the other. The first release is whole, and
// each later one changes the rules of the one before it.
constexpr std::array kReleases = {
    &kRelease0210, &kCommit20260518, &kRelease0220, &kRelease0221, &kRelease0230, &kRelease0240,
    &kRelease0250, &kRelease0251,    &kRelease0260, &kRelease0270, &kRelease0271, &kCommit20260817,
    &kRelease0280, &kRelease0290,    &kRelease0300, &kRelease0310, &kRelease0320, &kRelease0330,
    &kSglang0516,  &kSglang0520,     &kSglang0523,
};

constexpr std::string_view kSglangPrefix = "sglang-";

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
  if (name.starts_with(kSglangPrefix)) name.remove_prefix(kSglangPrefix.size());
  if (name.starts_with('v')) name.remove_prefix(1);
  return name;
}

// The number without what names a build of the release: "0.33.0+cu129", and as images are tagged,
// "0.33.0-cu130".
std::string_view without_build(std::string_view number) {
  number = number.substr(0, number.find('+'));
  for (const std::string_view build : {"-cu1", "-rocm", "-xpu", "-cpu", "-x86_64", "-aarch64"}) {
    number = number.substr(0, number.find(build));
  }
  return number;
}

// Whether both name one commit: all of the shorter name, and Git's seven digits at least.
bool is_commit(std::string_view commit, std::string_view name) {
  constexpr size_t kLeast = 7;
  const size_t common = std::min(commit.size(), name.size());
  return common >= kLeast && commit.substr(0, common) == name.substr(0, common);
}

// "0.34.0" and "9.0" are numbers of releases; "33" and the commit "3f2a1bc" have no dot.
bool is_release_number(std::string_view number) {
  const size_t dot = number.find_first_not_of("0123456789");
  return dot != 0 && dot != std::string_view::npos && number[dot] == '.';
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
  rules.engine = release.engine();
  if (release.apply != nullptr) release.apply(rules);
  rules.name = release.name;
  rules.commit = release.commit;
  rules.pins = release.pins;
  return rules;
}

// Rule sets that were built, in the order of all_releases().
struct Built {
  std::mutex mutex;
  std::array<std::unique_ptr<const RuleSet>, kReleases.size()> rules;
};

const RuleSet& rules_at(size_t index, Built& built) {
  const Release& release = *all_releases()[index];
  std::unique_ptr<const RuleSet>& rules = built.rules[index];
  if (rules) return *rules;
  const Release* before = release_before(release);
  const RuleSet* older = before == nullptr ? nullptr : &rules_at(index - 1, built);
  rules = std::make_unique<const RuleSet>(build(release, older));
  return *rules;
}

}  // namespace

std::string_view Release::version() const {
  const std::string_view number = name.substr(name.find('-') + 1);
  return number.find('-') == std::string_view::npos ? number : std::string_view();
}

Engine Release::engine() const { return engine_of_revision(name); }

std::span<const Release* const> all_releases() { return kReleases; }

std::span<const Release* const> releases_of(Engine engine) {
  const Chain all = all_releases();
  const auto is_in = [engine](const Release* release) { return release->engine() == engine; };
  const auto first = std::find_if(all.begin(), all.end(), is_in);
  return {first, std::find_if_not(first, all.end(), is_in)};
}

const Release* release_before(const Release& release) {
  const Chain chain = releases_of(release.engine());
  const size_t index = index_of(chain, release);
  return index == 0 ? nullptr : chain[index - 1];
}

const Release& newest_release(Engine engine) {
  const Chain chain = releases_of(engine);
  const auto newest = std::find_if(chain.rbegin(), chain.rend(),
                                   [](const Release* r) { return !r->version().empty(); });
  return newest == chain.rend() ? *chain.front() : **newest;
}

const Release* find_release(std::string_view name) {
  const std::string_view version = without_build(release_number(name));
  const std::string first = std::string(version) + ".0";  // "0.33" means "0.33.0"
  for (const Release* release : releases_of(engine_of_revision(name))) {
    if (release->name == name || is_commit(release->commit, name)) return release;
    if (release->version().empty()) continue;
    if (release->version() == version || release->version() == first) return release;
  }
  return nullptr;
}

bool is_newer_release(std::string_view name) {
  const std::string_view number = release_number(name);
  const std::array<int64_t, 3> asked = version_numbers(number);
  if (!is_release_number(number)) return false;
  const std::string_view newest = newest_release(engine_of_revision(name)).version();
  if (asked != version_numbers(newest)) return asked > version_numbers(newest);
  // "0.33.0.post1": the newest known number, and more behind it (PEP 440).
  if (!number.starts_with(newest)) return false;
  const std::string_view rest = number.substr(newest.size());
  return rest.starts_with(".post") || (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1]));
}

const Release& nearest_release(std::string_view name) {
  const Engine engine = engine_of_revision(name);
  const std::array<int64_t, 3> wanted = version_numbers(name);
  const Release* nearest = nullptr;
  for (const Release* release : releases_of(engine)) {
    if (release->version().empty()) continue;
    // The last one that is not newer; without one, the oldest.
    if (nearest == nullptr || version_numbers(release->version()) <= wanted) nearest = release;
  }
  const bool known_kind = wanted[0] == 0 && wanted[1] != 0;
  return nearest == nullptr || (!known_kind && wanted[0] == 0) ? newest_release(engine) : *nearest;
}

const RuleSet& rules_of(const Release& release) {
  static Built built;
  const std::lock_guard lock(built.mutex);
  return rules_at(index_of(all_releases(), release), built);
}

std::vector<const RuleSet*> all_revisions() {
  std::vector<const RuleSet*> all;
  all.reserve(kReleases.size());
  for (const Release* release : all_releases()) all.push_back(&rules_of(*release));
  return all;
}

const RuleSet& default_revision(Engine engine) { return rules_of(newest_release(engine)); }

const RuleSet& revision_by_name(std::string_view name) {
  if (const Release* release = find_release(name)) return rules_of(*release);
  if (is_newer_release(name)) return default_revision(engine_of_revision(name));
  throw Error::usage(fmt::format("unknown revision '{}'", name))
      .hint(fmt::format("the nearest is {0}: with --revision {0} the first start proves it",
                        nearest_release(name).name));
}

}  // namespace mxfp4
