// What `explain` found. It is shown as text that fits the terminal, or as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/console.hpp"
#include "apps/explain/explain_next.hpp"
#include "apps/explain/explain_start.hpp"
#include "apps/json_output.hpp"
#include "apps/options.hpp"
#include "apps/request.hpp"
#include "formats/blob/manifest.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/examine.hpp"

namespace mxfp4 {

struct Explanation : DecidedConversion {
  bool assumed_caller = false;          // `caller` is assumed: there is no checkpoint
  bool imagined = false;                // from a config without weights
  std::vector<std::string> warnings{};  // about the checkpoint
  NextCommand next{};                   // the command to type
  std::optional<StartSource> start{};   // blob or checkpoint
  std::vector<Candidate> candidates{};
  // Only with a backend:
  std::optional<KernelSettings> settings{};
  LayerDims multiples{};  // sizes are rounded up to these
};

// The answer, why the other candidates are not chosen, and the command to type; with -v also every
// fact in the question and every condition.
[[nodiscard]] std::string explanation_text(const Console& console, const RuleSet& rules,
                                           const ExplainOptions& options,
                                           const Explanation& explanation);
[[nodiscard]] Json explanation_json(const RuleSet& rules, const ExplainOptions& options,
                                    const Explanation& explanation);

// The answer in one line.
[[nodiscard]] std::string answer_text(const RuleSet& rules, const Explanation& explanation);
// What only the weights could show, in one line.
inline constexpr std::string_view kOnlyWeights =
    "from the config only: the weights could show that layers differ from it, have biases, or hold "
    "scales that a layout cannot keep";
// Parts of the report, one line each.
[[nodiscard]] std::string sizes_text(const Explanation& explanation);
[[nodiscard]] std::string settings_text(const KernelSettings& settings);
// The first rank's share of the model before rounding: no other rank has more experts.
[[nodiscard]] LayerDims share_of(const Explanation& explanation);
[[nodiscard]] std::string layout_text(const LayoutRow* row);

}  // namespace mxfp4
