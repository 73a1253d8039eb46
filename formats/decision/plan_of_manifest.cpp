#include "formats/decision/plan_of_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/blob/layout_facts.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

// Adds a finding unless the manifest and the input agree.
template <class Value>
void check_equal(Findings& findings, const std::string& place, std::string_view what,
                 const Value& in_manifest, const Value& in_input) {
  if (in_manifest == in_input) return;
  findings.push_back(fmt::format("{}: {}: {} in the manifest, the input has {}", place, what,
                                 in_manifest, in_input));
}

// Keeps the layers that the manifest has.
void keep_layers(ModelLayers& input, const Manifest& manifest) {
  if (manifest.all_layers) return;
  std::erase_if(input.layers, [&](const ExpertLayer& layer) {
    return std::ranges::find(manifest.layers, layer.index, &ManifestLayer::index) ==
           manifest.layers.end();
  });
}

void compare_layers(const ModelLayers& input, const Manifest& manifest, const std::string& place,
                    Findings& findings) {
  check_equal(findings, place, "layers", manifest.layers.size(), input.layers.size());
  if (input.layers.size() != manifest.layers.size()) return;
  for (size_t i = 0; i < input.layers.size(); ++i) {
    const ManifestLayer& layer = manifest.layers[i];
    check_equal(findings, place, "layer", layer.index, input.layers[i].index);
    check_equal(findings, place, fmt::format("layer {}: prefix", layer.index), layer.prefix,
                input.layers[i].prefix);
    check_equal(findings, place, fmt::format("layer {}: hidden size", layer.index),
                layer.recipe.hidden_size, input.layers[i].dims.hidden_size);
  }
}

// The manifest's rank as the loader cuts it out of the input.
RankSlice slice_of_input(const OpenedCheckpoint& input, const Manifest& manifest,
                         ExpertPlacement placement) {
  Deployment deployment;
  deployment.parallel = manifest.parallel;
  SliceRequest request{.rules = rules_of_blob(manifest),
                       .deployment = deployment,
                       .target = manifest.target,
                       .placement = placement,
                       .padded = manifest.layers.front().recipe.loaded().dims};
  if (input.config) request.config = &*input.config;
  request.caller = serving_caller(request.rules, input);
  const std::vector<RankSlice> ranks = cut_ranks(input.model, common_dims(input.model), request);
  if (manifest.rank.rank >= static_cast<int64_t>(ranks.size())) {
    throw Error::unsupported(
        fmt::format("rank {} of {}", manifest.rank.rank, manifest.rank.num_ranks));
  }
  return ranks[static_cast<size_t>(manifest.rank.rank)];
}

// Which of the ranks' experts a recipe names: neighbours, or every so many.
ExpertPlacement placement_of(const Recipe& recipe) {
  const std::vector<int64_t>& experts = recipe.experts;
  const bool neighbours = experts.size() < 2 || experts[1] == experts[0] + 1;
  return neighbours ? ExpertPlacement::kLinear : ExpertPlacement::kRoundRobin;
}

// The slice; empty, with a finding added, if the input cannot be cut into such ranks.
std::optional<RankSlice> find_slice(const OpenedCheckpoint& input, const Manifest& manifest,
                                    const std::string& place, Findings& findings) {
  try {
    return slice_of_input(input, manifest, placement_of(manifest.layers.front().recipe));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInput) throw;
    findings.push_back(fmt::format("{}: the input has no such rank: {}", place, error.what()));
    return std::nullopt;
  }
}

std::string rank_text(const RankNumbers& rank) {
  return fmt::format("{} of {} (tensor parallel {} of {}, expert parallel {} of {})", rank.rank,
                     rank.num_ranks, rank.tp_rank, rank.tp_size, rank.ep_rank, rank.ep_size);
}

// The first difference of the manifest's recipes from the input's.
void compare_recipes(const Plan& plan, const Manifest& manifest, const std::string& place,
                     Findings& findings) {
  for (size_t i = 0; i < plan.files.size(); ++i) {
    const ManifestLayer& layer = manifest.layers[i];
    const auto other = recipe_difference(layer.recipe, plan.files[i].recipe);
    if (!other) continue;
    check_equal(findings, place, fmt::format("layer {}: {}", layer.index, other->what), other->here,
                other->there);
    return;  // the other layers would repeat it
  }
}

}  // namespace

ManifestPlan plan_of_manifest(const std::shared_ptr<Source>& source, CheckpointOptions options,
                              const fs::path& directory, const Manifest& manifest) {
  ManifestPlan out;
  out.layout = layout_of(manifest);
  options.family = manifest.target.family;
  out.input = open_checkpoint(source, options, rules_of_blob(manifest));
  const std::string place = (directory / kManifestName).string();
  keep_layers(out.input.model, manifest);
  compare_layers(out.input.model, manifest, place, out.findings);
  if (!out.findings.empty()) return out;
  const std::optional<RankSlice> slice = find_slice(out.input, manifest, place, out.findings);
  if (!slice) return out;
  check_equal(out.findings, place, "rank", rank_text(manifest.rank), rank_text(*slice));
  if (!out.findings.empty()) return out;
  out.plan = make_plan(out.input.model, {*slice},
                       {.layout = out.layout, .parameters = layout_parameters(manifest.target)});
  compare_recipes(out.plan, manifest, place, out.findings);
  return out;
}

}  // namespace mxfp4
