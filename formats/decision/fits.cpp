#include "formats/decision/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/plan_difference.hpp"
#include "formats/decision/blob_revision.hpp"
#include "formats/decision/given_path.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

// The facts that a manifest tells of the deployment it was made for.
DeploymentFacts facts_of_blob(const Manifest& rank) {
  DeploymentFacts facts;
  facts.platform = rank.target.platform;
  if (!rank.target.arch.empty()) facts.arch = rank.target.arch;
  facts.env = rank.target.env;
  if (!rank.target.activation.empty()) facts.activation = rank.target.activation;
  for_each_fact_of<ParallelConfig>(
      [&](const FactRow&, auto members) { facts.*members.given = rank.parallel.*members.known; });
  return facts;
}

// The manifest that the blob would have if it were made for these facts, as far as they go.
Manifest as_if_made_for(const FitQuestion& question, Manifest rank) {
  const RuleSet& rules = question.rules != nullptr ? *question.rules : default_revision();
  const Deployment there =
      resolve_deployment(rules, merge_facts(question.facts, facts_of_blob(rank)), nullptr, nullptr);
  rank.revision = question.rules != nullptr ? std::string(rules.name) : question.release;
  rank.target.platform = there.platform;
  rank.target.arch = there.arch;
  rank.target.env = there.env;
  if (question.facts.tp_size) rank.target.world_size = *question.facts.tp_size;
  rank.parallel = there.parallel;
  return rank;
}

// A blob's first rank, with what its config says: a manifest may hold megabytes of it, and it is read once.
struct AskedBlob {
  const Manifest& rank;
  std::optional<ModelConfig> config;
};

// The backend that the engine would choose, asked with a typical model of the blob's style; empty
// if it would refuse or stop, or if the rules do not know a name.
std::optional<Backend> choice(const RuleSet& rules, const DeploymentFacts& facts,
                              const AskedBlob& asked) {
  const std::optional<ModelConfig>& config = asked.config;
  const Manifest& rank = asked.rank;
  if (!config) return std::nullopt;
  try {
    const CallerRow* caller = find_caller(rules, *config);
    const Deployment deployment = resolve_deployment(rules, facts, caller, &*config);
    const ModelFacts model{.caller = caller, .family = rank.target.family};
    const Decision decision = decide(rules, deployment, model);
    const auto notes = load_notes(rules, deployment, model, decision);
    if (std::ranges::any_of(notes, &LoadNote::stops)) return std::nullopt;
    return decision.backend;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether the engine takes the blob's backend, by itself or when told to.
bool takes_backend(const RuleSet& rules, DeploymentFacts facts, const AskedBlob& asked) {
  const Backend made_for = asked.rank.target.backend;
  if (choice(rules, facts, asked) == made_for) return true;
  return std::ranges::any_of(rules.aliases, [&](const AliasRow& row) {
    facts.moe_backend = row.name;
    return choice(rules, facts, asked) == made_for;
  });
}

// A backend that --backend or --moe-backend named is not the engine's own choice; but a machine on
// which no name makes the engine take it does not read the blob.
void check_told_backend(const FitQuestion& question, const AskedBlob& asked,
                        std::vector<FitReason>& reasons) {
  const Manifest& rank = asked.rank;
  const DeploymentFacts own = facts_of_blob(rank);
  if (!takes_backend(rules_of_blob(rank), own, asked)) return;  // nor on its own machine
  if (takes_backend(*question.rules, merge_facts(question.facts, own), asked)) return;
  reasons.push_back(
      {fmt::format("the engine takes {} there under no name", backend_name(rank.target.backend))});
}

// Whether the engine chooses another backend. A manifest does not tell every fact of its decision,
// so the question is asked only if the same question about the blob's own deployment has the blob's
// own answer.
void check_engines_choice(const FitQuestion& question, const AskedBlob& asked,
                          std::vector<FitReason>& reasons) {
  const Manifest& rank = asked.rank;
  const Backend made_for = rank.target.backend;
  const bool named = question.facts.moe_backend.has_value();
  if (rank.layout == kLoadedLayoutId) return;
  const DeploymentFacts own = facts_of_blob(rank);
  if (!named && (rank.decision.forced || choice(rules_of_blob(rank), own, asked) != made_for))
    return check_told_backend(question, asked, reasons);
  const std::optional<Backend> there =
      choice(*question.rules, merge_facts(question.facts, own), asked);
  if (there == made_for) return;
  reasons.push_back({there ? fmt::format("the engine chooses {} there, this blob is for {}",
                                         backend_name(*there), backend_name(made_for))
                           : fmt::format("the engine chooses no backend there, this blob is for {}",
                                         backend_name(made_for))});
}

void check_world(const Manifest& made, const Manifest& asked, std::vector<FitReason>& reasons) {
  const World here = world_of(made.parallel);
  const World there = world_of(asked.parallel);
  if (here.tp == there.tp && here.ep == there.ep) return;
  const auto words = [](const World& world) {
    return world.ep > 1 ? fmt::format("{} expert parallel ranks", world.ep)
                        : fmt::format("{} rank{}", world.tp, world.tp == 1 ? "" : "s");
  };
  reasons.push_back({fmt::format("{} there, this blob is of {}", words(there), words(here))});
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

// Why there are no rules of a release.
std::string unknown_release(const std::string& name) {
  if (!is_newer_release(name)) return fmt::format("no rules for {}", name);
  return fmt::format("{} is newer than {}, the newest release that this program knows", name,
                     newest_release(engine_of_revision(name)).name);
}

void append(std::vector<FitReason>& reasons, const std::vector<FitReason>& more) {
  for (const FitReason& reason : more) {
    const bool said = std::ranges::find(reasons, reason.text, &FitReason::text) != reasons.end();
    if (!said) reasons.push_back(reason);
  }
}

}  // namespace

Fits fits(const FitQuestion& question, const std::vector<Manifest>& ranks) {
  std::vector<Manifest> asked;
  asked.reserve(ranks.size());
  for (const Manifest& rank : ranks) asked.push_back(as_if_made_for(question, rank));
  Fits answer{.differs = differing_flags(ranks.front(), asked.front())};
  if (question.rules == nullptr) {
    answer.fit = Fit::kNotKnown;
    const Engine engine = engine_of_revision(question.release);
    answer.reasons.push_back(fmt::format(
        "{}{}", unknown_release(question.release),
        engine == Engine::kVllm ? ": the plug-in proves the blob at the engine's first start"
                                : ""));
    return answer;
  }
  std::vector<FitReason> reasons;
  check_world(ranks.front(), asked.front(), reasons);
  const AskedBlob blob{ranks.front(), typical_config(ranks.front())};  // every rank's config
  if (reasons.empty()) check_engines_choice(question, blob, reasons);
  if (reasons.empty()) {
    for (const Manifest& rank : asked)
      append(reasons, reasons_against(*question.rules, rank, asked, blob.config));
  }
  if (reasons.empty()) check_libraries(question, asked.front(), reasons);
  // What is certain comes first: then "no" is the answer, whatever else is not known.
  std::stable_partition(reasons.begin(), reasons.end(),
                        [](const FitReason& r) { return r.certain; });
  for (const FitReason& reason : reasons) answer.reasons.push_back(reason.text);
  if (!reasons.empty()) answer.fit = reasons.front().certain ? Fit::kNo : Fit::kNotKnown;
  return answer;
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
