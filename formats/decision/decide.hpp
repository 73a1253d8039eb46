// Decides a conversion: from a request and a checkpoint follow the backend, the layout and every
// rank's slice, or the reason why there are none. Every command asks this, and nothing else
// decides.
//
// Usage:
//   const OpenedCheckpoint checkpoint = open_checkpoint({.path = "model"}, rules);
//   const Conversion conversion = decide_conversion(request, &checkpoint);
//   require_conversion(conversion);
//   Plan plan = make_plan(checkpoint.model, conversion.ranks, plan_options(conversion));
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/decision/opened_checkpoint.hpp"
#include "lib/core/error.hpp"
#include "lib/load/slice.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// The question that every command asks. An empty member was not given.
struct ConversionRequest {
  const RuleSet* rules = nullptr;              // the engine revision; never null
  DeploymentFacts deployment{};                // the machine and process that will serve
  std::optional<Backend> backend{};            // forced: the oracle is not asked
  std::optional<Family> family{};              // of the converter; empty: the checkpoint's
  std::map<std::string, std::string> knobs{};  // parameters of the layout, by name
  std::optional<int64_t> world_size{};         // serving ranks, if the input is one rank's already
  ExpertPlacement placement = ExpertPlacement::kLinear;
  bool pad = true;                    // round sizes as the backend wants
  std::optional<LayerDims> padded{};  // H and I of the engine, in place of what the rules round to
  std::optional<int64_t> rank{};      // only this rank
  bool stop_at_loaded = false;        // write what the engine's loader would hold
  bool allow_known_defects = false;
  bool allow_unservable = false;  // also if the engine itself would not serve it
};

// The answer. A refusal is a member, beside all that was decided before it.
struct Conversion {
  const RuleSet* rules = nullptr;
  const CallerRow* caller = nullptr;  // the method class that serves the checkpoint
  Deployment deployment;
  Family family = Family::kGptOss;
  Decision decision;
  std::string stops;  // the first note that says why the engine would not serve; or empty
  // With a backend:
  Target target;
  const LayoutRow* row = nullptr;  // null: no such row
  const Layout* layout = nullptr;  // null: refused, or it stops at the loaded layout
  // With a backend and a checkpoint, unless refused earlier:
  LayerDims model;                   // sizes of the whole model
  std::vector<RankSlice> ranks;      // all of them, or the one that was asked for
  ScaleFill fill;                    // padding of the first rank's scales
  std::vector<std::string> defects;  // what the engine is known to get wrong with these bytes
  // Why nothing can be converted; empty if it can.
  std::optional<Error> refusal;
};

// `checkpoint` may be null: then sizes and slices are not known and not checked. Throws
// Error::usage for contradictory or unknown facts in the request, Error::input for such in the
// checkpoint. Every Error::unsupported becomes the refusal: the oracle's, a layout that does not
// exist, experts or sizes that cannot be divided, preconditions of the layout, an engine that stops
// at its start or while it loads (not for a forced backend), known defects. Reads no data except
// scales that the layout may refuse (Layout::refuses_scales).
[[nodiscard]] Conversion decide_conversion(const ConversionRequest& request,
                                           const OpenedCheckpoint* checkpoint);

// Throws the refusal, if there is one.
void require_conversion(const Conversion& conversion);

// The options of make_plan. Requires a conversion without a refusal.
[[nodiscard]] PlanOptions plan_options(const Conversion& conversion);

// How a model is cut among ranks.
struct SliceRequest {
  const RuleSet& rules;
  const Deployment& deployment;
  const Target& target;
  ExpertPlacement placement = ExpertPlacement::kLinear;
  bool pad = true;
  // The sizes to which a blob is padded, in place of what the rules say. They count only where the
  // checkpoint's loader pads at all.
  std::optional<LayerDims> padded{};
  const ModelConfig* config = nullptr;  // of the checkpoint, if it has one
  std::string_view method{};            // the class that serves it; empty: not known
};

// Every rank's slice of a model of these sizes. Throws as slice_ranks does.
[[nodiscard]] std::vector<RankSlice> cut_ranks(const ModelLayers& model, const LayerDims& dims,
                                               const SliceRequest& request);

}  // namespace mxfp4
