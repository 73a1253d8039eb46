// What `explain` found, for one release or several. It is one JSON document; the text is made of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/json_output.hpp"
#include "apps/options.hpp"
#include "apps/request.hpp"
#include "formats/decision/node_reads.hpp"
#include "formats/decision/open_checkpoint.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/oracle/checkpoint.hpp"

namespace mxfp4 {

struct Explanation : Conversion {
  bool assumed_caller = false;          // `caller` is assumed: there is no checkpoint
  bool imagined = false;                // from a config without weights
  std::vector<std::string> warnings{};  // about the checkpoint
  std::vector<std::string> next{};      // the parts of the command to type; none if it is refused
  // The parts of the engine's command that makes the same bytes at each start, without a blob; none
  // if it cannot.
  std::vector<std::string> serve{};
  std::vector<NodeReads> reads{};  // with --nodes, unless refused
  std::vector<Recipe> recipes{};   // with --against, unless refused
  LayerDims multiples{};           // sizes are rounded up to these; only with a backend
};

[[nodiscard]] Json explanation_json(const RuleSet& rules, const ExplainOptions& options,
                                    const Explanation& explanation);
// The answer, why the other candidates are not chosen, and the command to type; with -v also every
// fact in the question and every class that was asked. `document`: explanation_json's.
[[nodiscard]] std::string explanation_text(const Console& console, const Explanation& explanation,
                                           const Json& document);

// Parts of the report, one line each.
[[nodiscard]] std::string sizes_text(const Explanation& explanation);
[[nodiscard]] std::string layout_text(const LayoutRow* row);

// One release's answer to the question of --against. `error` says that the release does not know a name in
// it.
struct Side {
  const RuleSet& rules;
  Explanation explanation;
  std::optional<Error> error{};
};

// What the other releases decide, and whether a blob made for one serves the other.
[[nodiscard]] Json comparison_json(const Side& here, const std::vector<Side>& others);
// A line for each release; of one other release what differs first.
[[nodiscard]] std::string comparison_text(const Console& console, const Json& document);

// --batch: answers the JSON lines of `path`, "-" for stdin, with one line each, in order. A refusal is an
// answer. Throws Error::input naming file and line for a line that is not a deployment.
int explain_batch(const RuleSet& rules, const std::string& path, bool traces);

}  // namespace mxfp4
