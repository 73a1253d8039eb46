// The matching of Quark (quark/utils.py, fnmatch or a part of the name) and of compressed-tensors
// (vLLM 0.33.0, compressed_tensors/utils.py, find_matched_target).
#include "lib/load/module_rules.hpp"

#include <algorithm>
#include <regex>

namespace mxfp4 {
namespace {

// Matches one [...] of a glob. `at` is the place after '['; returns the place after ']', or npos if
// there is none.
size_t match_set(std::string_view pattern, size_t at, char c, bool& hit) {
  const bool negated = at < pattern.size() && pattern[at] == '!';
  if (negated) ++at;
  hit = false;
  for (size_t i = at; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > at) {
      hit = hit != negated;
      return i + 1;
    }
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      hit = hit || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      hit = hit || pattern[i] == c;
    }
  }
  return std::string_view::npos;
}

bool matches_regex(const std::string& pattern, const std::string& name,
                   std::regex_constants::match_flag_type how) {
  constexpr size_t kLongest = 512;  // the matcher recurses over the pattern
  if (pattern.size() > kLongest || name.size() > kLongest) return false;
  if (pattern.find('{') != std::string::npos) return false;
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;
#endif
  try {
    return std::regex_search(name, std::regex(pattern, flags), how);
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
      return regex_found(rule.pattern, std::string(module));
    case PatternKind::kAny:
      return true;
    case PatternKind::kGlob:
      break;
  }
  // Quark's own rule: a pattern without a star applies to the modules whose names it contains.
  const bool glob = rule.pattern.find('*') != std::string::npos;
  return glob ? glob_match(rule.pattern, module) : module.find(rule.pattern) != std::string::npos;
}

}  // namespace

const ModuleQuantization* find_rule(const Quantization& quantization, std::string_view module,
                                    const std::string& linear) {
  const auto hit = std::ranges::find_if(quantization.rules, [&](const ModuleQuantization& rule) {
    return matches(rule, module, linear);
  });
  return hit == quantization.rules.end() ? nullptr : &*hit;
}

bool is_excluded(const Quantization& quantization, int64_t layer, std::string_view module,
                 const std::string& linear) {
  const Exclusions& excluded = quantization.excluded;
  if (excluded.layers.contains(layer)) return true;
  const std::string name = excluded.of_linears ? linear : std::string(module);
  return std::ranges::any_of(excluded.patterns, [&](const std::string& pattern) {
    return regex_match_start(pattern, name);
  });
}

bool regex_match_start(const std::string& pattern, const std::string& name) {
  return matches_regex(pattern, name, std::regex_constants::match_continuous);
}

bool regex_found(const std::string& pattern, const std::string& name) {
  return matches_regex(pattern, name, std::regex_constants::match_default);
}

bool glob_match(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;
  size_t star_name = 0;
  while (n < name.size()) {
    bool hit = false;
    size_t next = p + 1;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[') next = match_set(pattern, p + 1, name[n], hit);
    if (next == std::string_view::npos) {  // an unclosed set is a plain bracket
      next = p + 1;
      hit = name[n] == '[';
    } else if (p < pattern.size() && pattern[p] != '[') {
      hit = pattern[p] == '?' || pattern[p] == name[n];
    }
    if (hit) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace mxfp4
