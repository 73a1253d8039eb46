// One release as a file of releases/ states it: its facts, and what it changed in the rules of the
// release before it. base/ holds the first one whole.
#pragma once

#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct Release {
  std::string_view name;         // "vllm-0.33.0"; for a commit of main "vllm-YYYY-MM-DD"
  std::string_view version;      // "0.33.0"; empty for a commit of main
  std::string_view date;         // of the wheel's upload, or of the commit
  std::string_view commit;       // of the engine; empty: its wheel does not say
  std::vector<LibraryPin> pins;  // kernel libraries that the rules and bytes were taken from
  std::string_view changes;      // in one line
  // The answers and bytes that this release's own wheel gave and that equal ours; empty: none yet.
  std::string_view executed{};
  // Changes the rules of the release before; null: they stay. That of the first writes them all.
  void (*apply)(RuleSet& rules) = nullptr;
  Engine engine = Engine::kVllm;
};

extern const Release kRelease0210;
extern const Release kCommit20260518;
extern const Release kRelease0220;
extern const Release kRelease0221;
extern const Release kRelease0230;
extern const Release kRelease0240;
extern const Release kRelease0250;
extern const Release kRelease0251;
extern const Release kRelease0260;
extern const Release kRelease0270;
extern const Release kRelease0271;
extern const Release kCommit20260817;
extern const Release kRelease0280;
extern const Release kRelease0290;
extern const Release kRelease0300;
extern const Release kRelease0310;
extern const Release kRelease0320;
extern const Release kRelease0330;

extern const Release kSglang0516;
extern const Release kSglang0520;
extern const Release kSglang0523;

}  // namespace mxfp4
