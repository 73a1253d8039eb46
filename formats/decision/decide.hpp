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

#include <optional>
#include <string_view>
#include <vector>

#include "formats/decision/conversion.hpp"
#include "formats/decision/open_checkpoint.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

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
  // method class rounds sizes.
  std::optional<LayerDims> padded{};
  const ModelConfig* config = nullptr;  // of the checkpoint, if it has one
  const CallerRow* caller = nullptr;    // the method class that serves it; null: not known

  [[nodiscard]] std::string_view method() const {
    return caller == nullptr ? std::string_view() : caller->method;
  }
};

// The method class that serves a checkpoint: by its config, or else by the style of its tensors.
// Null for an input in the loaded layout that does not say whose it is.
[[nodiscard]] const CallerRow* serving_caller(const RuleSet& rules,
                                              const OpenedCheckpoint& checkpoint);

// Every rank's slice of a model of these sizes. Throws as slice_ranks does.
[[nodiscard]] std::vector<RankSlice> cut_ranks(const ModelLayers& model, const LayerDims& dims,
                                               const SliceRequest& request);

}  // namespace mxfp4
