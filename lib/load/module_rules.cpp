// The matching of Quark (quark/utils.py, fnmatch or a part of the name) and of compressed-tensors
// (vLLM 0.33.0, compressed_tensors/utils.py, find_matched_target).
#include "lib/load/module_rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <regex>
#include <utility>

namespace mxfp4 {
namespace {

constexpr size_t kLongest = 512;  // of a pattern or name: the matcher recurses over the pattern

// Whether repetitions by number, which the matcher writes out, stay few: their product, since one
// may lie in another.
bool counts_little(std::string_view pattern) {
  constexpr int kMost = 64;
  int product = 1;
  for (size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    if (at > 0 && pattern[at - 1] == '\\') continue;
    const size_t end = pattern.find('}', at);
    if (end == std::string_view::npos) return false;
    const std::string_view range = pattern.substr(at + 1, end - at - 1);
    const std::string_view last = range.substr(range.rfind(',') + 1);
    const std::string_view most = last.empty() ? range.substr(0, range.size() - 1) : last;
    int times = 0;
    const auto [rest, error] = std::from_chars(most.data(), most.data() + most.size(), times);
    if (error != std::errc{} || rest != most.data() + most.size()) return false;
    if (times > kMost || (product *= std::max(times, 1)) > kMost) return false;
  }
  return true;
}

std::optional<std::regex> read_regex(const std::string& pattern) {
  if (pattern.size() > kLongest || !counts_little(pattern)) return std::nullopt;
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;
#endif
  try {
    return std::regex(pattern, flags);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

bool matches_regex(const std::string& pattern, const std::string& name,
                   std::regex_constants::match_flag_type how) {
  if (name.size() > kLongest) return false;
  const std::optional<std::regex> read = read_regex(pattern);
  try {
    return read && std::regex_search(name, *read, how);
  } catch (const std::regex_error&) {
    return false;
  }
}

bool matches(const ModuleQuantization& rule, std::string_view module, const std::string& linear) {
  switch (rule.kind) {
    case PatternKind::kName:
      return rule.pattern == linear;
    case PatternKind::kRegex:
      return regex_match_start(rule.pattern, linear);
    case PatternKind::kSearch:
      return matches_regex(rule.pattern, std::string(module), std::regex_constants::match_default);
    case PatternKind::kBeginning:
      return module.starts_with(rule.pattern);
    case PatternKind::kAny:
      return true;
    case PatternKind::kGlob:
      break;
  }
  // Quark's own rule: a pattern without a star names modules, and those within stand for the whole.
  const bool glob = rule.pattern.find('*') != std::string::npos;
  return glob ? glob_match(rule.pattern, std::string(module))
              : rule.pattern.find(module) != std::string::npos;
}

// The same projection's name in the other words that models have for it; empty if there is none.
std::string with_other_word(const std::string& linear) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWords = {
      {{".w1", ".gate_proj"}, {".w3", ".up_proj"}, {".w2", ".down_proj"}}};
  for (const auto& [numbered, spoken] : kWords) {
    for (const auto& [word, other] : {std::pair{numbered, spoken}, {spoken, numbered}}) {
      if (linear.ends_with(word)) {
        return fmt::format("{}{}", linear.substr(0, linear.size() - word.size()), other);
      }
    }
  }
  return {};
}

}  // namespace

std::string engine_name(const Quantization& quantization, std::string name) {
  name = renamed(quantization.renames, std::move(name));
  const std::string& block = quantization.checkpoint_block;
  const size_t at = block.empty() ? std::string::npos : name.find("." + block + ".");
  if (at != std::string::npos) name.replace(at + 1, block.size(), quantization.engine_block);
  return name;
}

std::string renamed(std::span<const Rename> renames, std::string name) {
  for (const Rename& rename : renames) {
    if (name.starts_with(rename.from)) name.replace(0, rename.from.size(), rename.to);
  }
  return name;
}

const ModuleQuantization* find_rule(const Quantization& quantization, std::string_view module,
                                    const std::string& linear) {
  const std::string engine_module = engine_name(quantization, std::string(module));
  const auto find = [&](const std::string& name) -> const ModuleQuantization* {
    const auto hit = std::ranges::find_if(quantization.rules, [&](const ModuleQuantization& rule) {
      return matches(rule, engine_module, name);
    });
    return hit == quantization.rules.end() ? nullptr : &*hit;
  };
  const std::string engine_linear = engine_name(quantization, linear);
  const ModuleQuantization* rule = find(engine_linear);
  if (rule != nullptr || !quantization.named_only) return rule;
  const std::string other = with_other_word(engine_linear);
  return other.empty() ? nullptr : find(other);
}

bool is_excluded(const Quantization& quantization, int64_t layer, std::string_view module,
                 const std::string& linear) {
  const Exclusions& excluded = quantization.excluded;
  if (excluded.layers.contains(layer)) return true;
  if (excluded.modules.contains(engine_name(quantization, std::string(module)))) return true;
  const std::string name =
      engine_name(quantization, excluded.of_linears ? linear : std::string(module));
  return std::ranges::any_of(excluded.patterns, [&](const std::string& pattern) {
    return regex_match_start(pattern, name);
  });
}

bool regex_readable(const std::string& pattern) { return read_regex(pattern).has_value(); }

bool regex_match_start(const std::string& pattern, const std::string& name) {
  return matches_regex(pattern, name, std::regex_constants::match_continuous);
}

bool glob_match(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace mxfp4
