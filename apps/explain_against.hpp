// `explain --against`: what another engine revision would decide otherwise for the same deployment
// and checkpoint, and whether a blob made for the one serves the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/explain_report.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// One fact that differs.
struct RevisionChange {
  std::string what;   // "backend"
  std::string here;   // by the first rule set
  std::string there;  // by the other
};

struct RevisionComparison {
  std::vector<RevisionChange> changes;  // of the decision and what follows from it
  bool repack = false;                  // a blob of the one does not serve the other
};

// One side of a comparison; `error` when the revision does not even know a name in the question.
struct Side {
  const RuleSet& rules;
  Explanation explanation;
  std::optional<Error> error{};
};

[[nodiscard]] RevisionComparison compare_revisions(const Side& here, const Side& there);

[[nodiscard]] std::string comparison_text(const Side& here, const Side& there,
                                          const RevisionComparison& comparison);
[[nodiscard]] Json comparison_json(const Side& here, const Side& there,
                                   const RevisionComparison& comparison);

}  // namespace mxfp4
