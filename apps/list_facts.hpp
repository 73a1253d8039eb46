// The tables of `list` about what a user can say: the serving machine and process, its variables
// and kernel packages, the layouts' knobs, and how a checkpoint names its tensors.
#pragma once

#include <string>
#include <vector>

#include "apps/json_output.hpp"
#include "apps/options.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct ListQuestion {
  const ListOptions& options;
  const RuleSet& rules;
  const RuleSet* only;  // null without --revision and --engine: any release's rules count
};

struct ListRow {
  Json members;                      // the first is the row's name
  std::vector<std::string> names{};  // what it may be called, too
};
using ListRows = std::vector<ListRow>;

[[nodiscard]] ListRows variable_rows(const ListQuestion& question);
[[nodiscard]] ListRows library_rows(const ListQuestion& question);
[[nodiscard]] ListRows knob_rows(const ListQuestion& question);
[[nodiscard]] ListRows machine_rows(const ListQuestion& question);
[[nodiscard]] ListRows style_rows(const ListQuestion& question);

}  // namespace mxfp4
