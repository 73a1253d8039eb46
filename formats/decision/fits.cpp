#include "formats/decision/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/plan_difference.hpp"
#include "formats/checkpoint/described_source.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/recipes.hpp"
#include "formats/decision/request_json.hpp"
#include "formats/output/given_path.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/output.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

struct FitReason {
  std::string text;
  bool certain = true;  // false: nobody can say it beforehand
};

// The blob's checkpoint as these rules see it.
OpenedCheckpoint checkpoint_of(const Manifest& rank, const CheckpointRequest& asked,
                               const RuleSet& rules) {
  CheckpointOptions options = asked.checkpoint;
  options.path = kManifestName;
  OpenedCheckpoint checkpoint = open_checkpoint(open_described_source(rank), options, rules);
  checkpoint.imagined = true;  // its weights cannot be read
  return checkpoint;
}

// The values of --moe-backend with which the engine is asked, the first one first. The engine's own
// choice counts only if the blob was made for that; a backend that was named, or that another engine
// calls otherwise, may be named again.
std::vector<std::string> names_to_ask(const FitQuestion& question, const Manifest& rank,
                                      const ConversionRequest& request) {
  if (question.facts.moe_backend) return {*question.facts.moe_backend};
  const std::string asked = request.deployment.moe_backend.value_or("auto");
  const bool same_engine = rank.engine == question.rules->engine;
  if (same_engine && !request.backend && asked == "auto") return {asked};
  std::vector<std::string> names;
  if (same_engine) names.push_back(asked);
  names.emplace_back("auto");
  for (const AliasRow& alias : question.rules->aliases) names.emplace_back(alias.name);
  return names;
}

// What a fresh conversion for the deployment would be; without one, the reason.
struct Fresh {
  std::optional<Conversion> conversion{};
  std::string name{};  // of --moe-backend that was asked
  std::string reason{};
  bool takes_backend = true;
};

Fresh decide_as(const ConversionRequest& request, const OpenedCheckpoint& checkpoint,
                Backend made_for) {
  Fresh there;
  try {
    Conversion made = decide_conversion(request, &checkpoint);
    const std::optional<Backend> backend = made.decision.backend;
    if (backend != made_for && !request.stop_at_loaded) {
      there.takes_backend = false;
      there.reason =
          fmt::format("the engine chooses {} there, this blob is for {}",
                      backend ? backend_name(*backend) : "no backend", backend_name(made_for));
    } else if (made.refusal) {
      there.reason = made.refusal->message();
    } else {
      there.conversion = std::move(made);
    }
  } catch (const Error& error) {
    there.reason = error.what();
  }
  return there;
}

Fresh decide_there(const FitQuestion& question, const Manifest& rank, CheckpointRequest asked,
                   const OpenedCheckpoint& checkpoint) {
  ConversionRequest& request = asked.request;
  const std::vector<std::string> names = names_to_ask(question, rank, request);
  request.deployment = merge_facts(question.facts, request.deployment);
  if (request.backend && !request.deployment.arch) {
    // Nothing is known of the machine, so only the backend's own rules can be asked.
    request.deployment.needs_arch = false;
    return decide_as(request, checkpoint, rank.target.backend);
  }
  request.backend.reset();
  Fresh first;
  for (const std::string& name : names) {
    request.deployment.moe_backend = name;
    Fresh there = decide_as(request, checkpoint, rank.target.backend);
    there.name = name;
    if (there.conversion) return there;
    if (first.reason.empty()) first = std::move(there);
  }
  if (names.size() > 1) {
    first.takes_backend = false;
    first.reason =
        fmt::format("no --moe-backend gives {} there", backend_name(rank.target.backend));
  }
  return first;
}

// Compares the recipes of these ranks with those of the fresh conversion.
void compare_recipes(const std::vector<Manifest>& ranks, const Fresh& there,
                     const OpenedCheckpoint& checkpoint, std::vector<FitReason>& reasons) {
  const std::vector<Recipe> recipes = recipes_of(*there.conversion, checkpoint.model);
  const size_t all = there.conversion->ranks.size();
  for (const Manifest& rank : ranks) {
    const auto index = static_cast<size_t>(rank.rank.rank);
    if (index >= all || rank.layers.size() * all != recipes.size()) {
      throw Error::input("its rank or layers do not fit its own parallel sizes");
    }
    for (size_t layer = 0; layer < rank.layers.size(); ++layer) {
      const auto other = recipe_difference(rank.layers[layer].recipe, recipes[layer * all + index]);
      if (!other) continue;
      reasons.push_back(
          {fmt::format("{} {} there, this blob has {}", other->what, other->there, other->here)});
      return;  // the other layers would repeat it
    }
  }
}

// Versions of kernel libraries with which the blob's layout was not tested.
void check_libraries(const FitQuestion& question, const Manifest& rank,
                     std::vector<FitReason>& reasons) {
  const Layout* layout = layout_by_id(rank.layout);
  for (const auto& [package, version] : question.facts.lib_versions) {
    if (!untested_version(*question.rules, layout, package, version, rank.target.platform))
      continue;
    reasons.push_back(
        {fmt::format("{} {}: {} was not tested with it", package, version, rank.layout),
         /*certain=*/false});
  }
}

// The manifest that the blob would have if it were made for these facts, as far as they go.
Manifest as_if_made_for(const FitQuestion& question, Manifest rank) {
  const RuleSet& rules = *question.rules;
  const DeploymentFacts asked = request_of(rank, rules).request.deployment;
  const Deployment there =
      resolve_deployment(rules, merge_facts(question.facts, asked), nullptr, nullptr);
  rank.revision = question.release;
  rank.target.platform = there.platform;
  rank.target.arch = there.arch;
  rank.target.env = there.env;
  if (question.facts.tp_size) rank.target.world_size = *question.facts.tp_size;
  rank.parallel = there.parallel;
  return rank;
}

// Asks what a fresh conversion would be, and compares its recipes with the blob's.
void check_recipes(const FitQuestion& question, const std::vector<Manifest>& ranks, Fits& answer,
                   std::vector<FitReason>& reasons) {
  const Manifest& first = ranks.front();
  const CheckpointRequest asked = request_of(first, *question.rules);
  try {
    const OpenedCheckpoint checkpoint = checkpoint_of(first, asked, *question.rules);
    const Fresh there = decide_there(question, first, asked, checkpoint);
    if (there.conversion) {
      compare_recipes(ranks, there, checkpoint, reasons);
    } else {
      answer.takes_backend = there.takes_backend;
      reasons.push_back({there.reason});
    }
  } catch (const Error& error) {
    reasons.push_back({error.what()});
  }
}

}  // namespace

std::string other_world(const Manifest& rank, const ParallelConfig& parallel) {
  const World here = world_of(rank.parallel);
  const World there = world_of(parallel);
  if (here.tp == there.tp && here.ep == there.ep) return "";
  const auto words = [](const World& world) {
    return world.ep > 1 ? fmt::format("{} expert parallel ranks", world.ep)
                        : fmt::format("{} rank{}", world.tp, world.tp == 1 ? "" : "s");
  };
  return fmt::format("{} there, this blob is of {}", words(there), words(here));
}

Fits fits(const FitQuestion& question, const std::vector<Manifest>& ranks) {
  const Manifest there = as_if_made_for(question, ranks.front());
  Fits answer{.differs = differing_flags(ranks.front(), there)};
  std::vector<FitReason> reasons;
  const std::string world = other_world(ranks.front(), there.parallel);
  if (!world.empty()) reasons.push_back({world});
  if (reasons.empty()) check_recipes(question, ranks, answer, reasons);
  if (reasons.empty()) check_libraries(question, there, reasons);
  if (question.release != question.rules->name) {
    reasons.push_back(
        {fmt::format("{} is newer than {}, whose rules were asked: the plug-in proves "
                     "a blob at the engine's first start, in the time and memory of its own load",
                     question.release, question.rules->name),
         /*certain=*/false});
  }
  for (const FitReason& reason : reasons) answer.reasons.push_back(reason.text);
  if (!reasons.empty()) answer.fit = reasons.front().certain ? Fit::kNo : Fit::kNotKnown;
  return answer;
}

std::optional<std::string> moe_backend_for(const Manifest& rank) {
  if (rank.layout == kLoadedLayoutId) return std::nullopt;
  const RuleSet& rules = rules_of_blob(rank);
  try {
    const CheckpointRequest asked = request_of(rank, rules);
    if (!asked.request.backend) return asked.request.deployment.moe_backend.value_or("auto");
    const FitQuestion question{.rules = &rules};
    const Fresh there = decide_there(question, rank, asked, checkpoint_of(rank, asked, rules));
    if (there.conversion && !there.name.empty()) return there.name;
  } catch (const Error&) {
    // What cannot be decided is not served.
  }
  return std::nullopt;
}

Fits fits(const FitQuestion& question, const BlobRanks& blob) {
  Fits answer = fits(question, blob.manifests);
  std::vector<std::string> findings;
  for (size_t i = 0; i < blob.directories.size(); ++i) {
    for (std::string& finding : check_layer_sizes(blob.directories[i], blob.manifests[i])) {
      findings.push_back(std::move(finding));
    }
  }
  if (findings.empty()) return answer;
  answer.fit = Fit::kNo;
  answer.damaged = true;
  const size_t others = findings.size() - 1;
  answer.reasons = {others == 0 ? findings.front()
                                : fmt::format("{}, and {} more", findings.front(), others)};
  return answer;
}

}  // namespace mxfp4
