// What `explain` found, and how it is shown: a table for people, at most 80 columns wide, or JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/options.hpp"
#include "apps/session.hpp"
#include "lib/oracle/checkpoint.hpp"

namespace mxfp4 {

struct Explanation : Choice {
  bool assumed_caller = false;  // there is no checkpoint to tell
  // Only with a backend:
  std::optional<QuantSettings> settings{};
  LayerDims multiples{};             // sizes are rounded up to these
  std::optional<RankSizes> sizes{};  // when the model's sizes are known
};

[[nodiscard]] std::string explanation_text(const RuleSet& rules, const ExplainOptions& options,
                                           const Explanation& explanation);
[[nodiscard]] std::string explanation_json(const RuleSet& rules, const ExplainOptions& options,
                                           const Explanation& explanation);

// Appends `text` broken at blanks so that no line passes 80 columns, behind `first`; further lines
// begin with `indent` blanks. A word that is too long for a line is broken after a comma, or
// anywhere.
void append_wrapped(std::string& out, std::string first, size_t indent, std::string_view text);

// Parts of the report, one line each.
[[nodiscard]] std::string sizes_text(const Explanation& explanation);
[[nodiscard]] std::string settings_text(const QuantSettings& settings);
[[nodiscard]] std::string layout_text(const LayoutRow* row);

}  // namespace mxfp4
