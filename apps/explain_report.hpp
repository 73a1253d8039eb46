// What `explain` found, and how it is shown: a table for people, at most 80 columns wide, or JSON.
#pragma once

#include <optional>
#include <string>

#include "apps/explain.hpp"
#include "lib/oracle/checkpoint.hpp"

namespace mxfp4 {

struct Explanation {
  Deployment deployment;
  const CallerRow* caller = nullptr;
  bool assumed_caller = false;  // there is no checkpoint to tell
  Family family = Family::kGptOss;
  Decision decision;
  // Only with a backend:
  std::optional<Target> target;
  std::optional<QuantSettings> settings;
  const LayoutRow* layout = nullptr;
  LayerDims multiples;             // sizes are rounded up to these
  std::optional<RankSizes> sizes;  // when the model's sizes are known
};

[[nodiscard]] std::string explanation_text(const RuleSet& rules, const ExplainOptions& options,
                                           const Explanation& explanation);
[[nodiscard]] std::string explanation_json(const RuleSet& rules, const ExplainOptions& options,
                                           const Explanation& explanation);

// The flags that say what `request` says, as one would type them, each with a blank in front.
[[nodiscard]] std::string request_flags(const DeploymentRequest& request);

}  // namespace mxfp4
