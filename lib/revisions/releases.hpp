// One release as a file of releases/ states it: its facts, and what it changed in the rules of the
// release before it. base/ holds the first one whole.
#pragma once

#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct Release {
  std::string_view name;         // "vllm-0.33.0"; for a commit of main "vllm-YYYY-MM-DD"
  std::string_view date;         // of the wheel's upload, or of the commit
  std::string_view commit{};     // of the engine; empty: its wheel does not say
  std::vector<LibraryPin> pins;  // kernel libraries that the rules and bytes were taken from
  std::string_view changes;      // in one line
  // Changes the rules of the release before; null: they stay. That of the first writes them all.
  void (*apply)(RuleSet& rules) = nullptr;

  // "0.33.0"; empty for a commit of main.
  [[nodiscard]] std::string_view version() const;
  [[nodiscard]] Engine engine() const;
};

extern const Release kRelease0210, kCommit20260518, kRelease0220, kRelease0221, kRelease0230,
    kRelease0240, kRelease0250, kRelease0251, kRelease0260, kRelease0270, kRelease0271,
    kCommit20260817, kRelease0280, kRelease0290, kRelease0300, kRelease0310, kRelease0320,
    kRelease0330, kSglang0516, kSglang0520, kSglang0523;

}  // namespace mxfp4
