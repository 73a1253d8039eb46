#include "lib/revisions/class_limits.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "lib/oracle/model_classes.hpp"
#include "lib/revisions/class_table.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// A release's place in time; empty for a name that is not a number of vLLM's.
std::optional<size_t> place_of(std::string_view version) {
  const auto releases = releases_of(Engine::kVllm);
  const auto found = std::ranges::find(releases, version, &Release::version);
  if (version.empty() || found == releases.end()) return std::nullopt;
  return static_cast<size_t>(found - releases.begin());
}

std::optional<size_t> place_of(const RuleSet& rules) {
  const Release* release = rules.engine == Engine::kVllm ? find_release(rules.name) : nullptr;
  return release == nullptr ? std::nullopt : place_of(release->version());
}

// The letters of the last row for a class or quantization up to the release; empty: nothing is
// missing.
std::string missing(size_t release, std::string_view platform, std::string_view name) {
  std::istringstream words{std::string(kClassTable)};
  std::string letters;
  std::string of_row;
  bool applies = false;
  for (std::string word; words >> word;) {
    if (word.front() == '@') {
      const auto since = place_of(std::string_view(word).substr(1));
      std::string platforms;
      words >> platforms >> of_row;
      applies = since && *since <= release && platforms.find(platform) != std::string::npos;
    } else if (applies && word == name) {
      letters = of_row;
    }
  }
  return letters;
}

}  // namespace

std::string model_class_of(const ModelConfig& config) {
  for (const std::string& name : config.architectures) {
    std::string known = known_architecture(name);
    if (!known.empty()) return known;
  }
  return config.architectures.empty() ? "" : config.architectures.front();
}

ClassLimits class_limits(const RuleSet& rules, const ModelConfig& config, Platform platform) {
  ClassLimits limits;
  const auto place = place_of(rules);
  if (!place) return limits;
  const std::string letters = missing(*place, platform_name(platform), model_class_of(config));
  const auto has = [&](char letter) { return letters.find(letter) == std::string::npos; };
  limits.starts = has('p');
  limits.lora = has('l');
  limits.redundant_experts = has('e');
  limits.splits_inputs = has('s');
  limits.few_experts = has('t');
  const std::string method = config.quantization ? config.quantization->name : "";
  limits.quantization = missing(*place, platform_name(platform), method).empty();
  return limits;
}

}  // namespace mxfp4
