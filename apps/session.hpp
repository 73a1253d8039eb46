// Everything that is known about a conversion before bytes move: the opened source, its layers, the
// backend and why, every rank's slice.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/slice.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {

// An opened input and the MoE layers in it.
struct OpenInput {
  std::filesystem::path path;  // as it was given
  std::shared_ptr<Source> source;
  std::optional<ModelConfig> config;
  ModelLayers model;
  size_t layers_left_out = 0;  // by --layers
};

// The value of --family, or nothing when it is empty. Throws Error::usage.
[[nodiscard]] std::optional<Family> family_flag(const std::string& family);

inline constexpr const char* kConfigName = "config.json";

// The text of the model's config.json: --model-config, or what the input carries.
[[nodiscard]] std::optional<std::string> config_text(const InputOptions& options,
                                                     const Source& source);

// `family` is --family or empty; `rules` say what the engine's loader does with the checkpoint.
// Throws Error::input, Error::unsupported for a checkpoint that no method of the revision serves.
[[nodiscard]] OpenInput open_input(const InputOptions& options, const std::string& family,
                                   const RuleSet& rules);
// The same of a source that open_source gave for `options`.
[[nodiscard]] OpenInput open_input(std::shared_ptr<Source> source, const InputOptions& options,
                                   const std::string& family, const RuleSet& rules);

// Keeps the layers that `layers` ("0-3,7") names. Throws Error::usage when one does not exist.
void select_layers(ModelLayers& model, const std::string& layers);

// The size that all layers share. Throws Error::input when they differ.
[[nodiscard]] LayerDims common_dims(const ModelLayers& model);

// What decides beside the flags, as far as it is known.
struct ModelFacts {
  const ModelConfig* config = nullptr;
  const CallerRow* caller = nullptr;  // the method class that serves the checkpoint
  std::optional<Family> family{};     // what the user says, or the checkpoint
  std::optional<bool> biases{};
  std::optional<bool> input_scales{};
};

// Those of an input, which outlives them.
[[nodiscard]] ModelFacts facts_of(const OpenInput& input, const RuleSet& rules);

// The answer to "which backend, and how": what convert does, inspect and explain tell.
struct Choice {
  const RuleSet* rules = nullptr;
  const CallerRow* caller = nullptr;
  Deployment deployment;
  Family family = Family::kGptOss;
  Decision decision;
  Target target;
  const LayoutRow* row = nullptr;  // null: no such row
};

// Resolves the flags for this model through the oracle, or by --backend. A refusal is a Choice
// whose decision has no backend, or whose row has no layout; require_layout turns it into an error.
[[nodiscard]] Choice choose_backend(const DeploymentOptions& options, const OpenInput& input);
// The same for a request that request_from gave, by other rules or without a checkpoint.
[[nodiscard]] Choice choose_backend(const DeploymentOptions& options, const RuleSet& rules,
                                    const DeploymentRequest& request, const ModelFacts& facts);

// Warns of ranks that the blob at `path`, whose manifests these are, should have and has not.
void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console);

// The rule set of a blob, by its manifest; the default one where this program does not know it:
// bytes follow from the layout id, not from the rules.
[[nodiscard]] const RuleSet& rules_of_blob(const Manifest& manifest);

// The rule set that --revision names.
[[nodiscard]] const RuleSet& rules_for(const DeploymentOptions& options);
// What the flags and the --target file say.
[[nodiscard]] DeploymentRequest request_from(const DeploymentOptions& options,
                                             const RuleSet& rules);
// --backend, if it was given.
[[nodiscard]] std::optional<Backend> forced_backend(const DeploymentOptions& options);

// Throws Error::unsupported with the reference's words when the oracle refused.
void require_backend(const Choice& choice);
// The layout of a choice. Throws Error::unsupported with the reference's words.
[[nodiscard]] const Layout* require_layout(const Choice& choice);

// Throws Error::usage for a --rank that is not one of `ranks`.
void require_rank(const DeploymentOptions& options, int64_t ranks);

// Slices for all ranks, or for --rank alone.
[[nodiscard]] std::vector<RankSlice> plan_ranks(const DeploymentOptions& options,
                                                const OpenInput& input, const Choice& choice);

// Known defects of the reference that these weights would have, as one line each.
[[nodiscard]] std::vector<std::string> known_defects(const Choice& choice, const ModelLayers& model,
                                                     const RankSlice& rank);

// What every rank's manifest shares.
[[nodiscard]] Manifest describe_conversion(const OpenInput& input, const Choice& choice,
                                           const Layout* layout);

}  // namespace mxfp4
