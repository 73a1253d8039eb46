// A conversion's request, and the conversion that decide.hpp makes of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/load/slice.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"

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

}  // namespace mxfp4
