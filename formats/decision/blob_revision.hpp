// Decides whether a blob that was made by one engine revision's rules would serve another revision,
// too: whether layout, padded sizes and slices are the same there. `explain --against` answers
// which backend that revision would choose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// One line that says why a blob would not serve, or why nobody can say it beforehand.
struct FitReason {
  std::string text;
  bool certain = true;  // false: not known
};

// The reasons why the blob of `rank` would not serve; none if it would. `ranks` are the manifests
// of all ranks at hand, from which the size of the whole model follows; `config` is typical_config()
// of one of them.
[[nodiscard]] std::vector<FitReason> reasons_against(const RuleSet& rules, const Manifest& rank,
                                                     const std::vector<Manifest>& ranks,
                                                     const std::optional<ModelConfig>& config);

// The config.json that the manifest keeps; of an older blob one of its checkpoint style, as far as
// the manifest tells: its method class, model type, activation and sizes. Empty for a loaded input.
[[nodiscard]] std::optional<ModelConfig> typical_config(const Manifest& rank);

// The rule set by which a blob was made. If this program does not know the manifest's revision, the
// default one, which is good enough because bytes follow from the layout id, not from the rules.
[[nodiscard]] const RuleSet& rules_of_blob(const Manifest& manifest);

}  // namespace mxfp4
