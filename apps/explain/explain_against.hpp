// `explain --against`: shows what another release of vLLM would decide differently for the same
// deployment and checkpoint, and whether a blob made for one serves the other.
#pragma once

#include <optional>
#include <string>

#include "apps/explain/explain_report.hpp"
#include "formats/decision/compare_revisions.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// One side of a comparison. `error` says that the revision does not know a name in the question.
struct Side {
  const RuleSet& rules;
  Explanation explanation;
  std::optional<Error> error{};

  [[nodiscard]] RevisionAnswer answer() const { return {rules, explanation, error}; }
};

[[nodiscard]] std::string comparison_text(const Side& here, const Side& there);
// One line for each release: backend, layout, sizes, and whether the bytes are those of `here`.
[[nodiscard]] std::string comparison_table(const Console& console, const Side& here,
                                           const std::vector<Side>& others);
[[nodiscard]] Json comparison_json(const Side& here, const std::vector<Side>& others);

}  // namespace mxfp4
