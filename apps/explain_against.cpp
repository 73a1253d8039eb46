#include "apps/explain_against.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

// The facts of one side in words; empty where a side has none.
struct ComparedFact {
  std::string_view what;
  std::string (*say)(const Side&);
  bool moves_bytes = false;  // another value means other bytes
};

std::string outcome(const Side& side) {
  if (side.error) return fmt::format("refused: {}", side.error->what());
  const Decision& decision = side.explanation.decision;
  if (!decision.backend) {
    return fmt::format("refused: {}: {}", decision.error_type, decision.error_message);
  }
  if (side.explanation.refusal) {
    return fmt::format("refused: {}", side.explanation.refusal->what());
  }
  return std::string(backend_name(*decision.backend));
}

bool decided(const Side& side) { return !side.error && !side.explanation.refusal; }

std::string served_by(const Side& side) {
  const CallerRow* caller = side.explanation.caller;
  return caller == nullptr ? "" : std::string(caller->method);
}

std::string packages(const Side& side) {
  return fmt::format("{}", fmt::join(side.explanation.deployment.libs, " "));
}

// How the intermediate size is cut, where revisions differ: only the generic loader.
std::string slices(const Side& side) {
  if (!decided(side) || side.explanation.family != Family::kGeneric) return "";
  const ParallelConfig& p = side.explanation.deployment.parallel;
  if (p.enable_expert_parallel || p.tp_size * p.pcp_size * p.dp_size == 1) return "";
  return side.rules.loader.strides_by_checkpoint ? "ranks begin at multiples of I / ranks"
                                                 : "ranks begin at multiples of the padded size";
}

std::string notes(const Side& side) {
  if (!decided(side)) return "";
  std::vector<std::string> all = side.explanation.decision.notes;
  all.insert(all.end(), side.explanation.defects.begin(), side.explanation.defects.end());
  return fmt::format("{}", fmt::join(all, "; "));
}

constexpr ComparedFact kFacts[] = {
    {"served by", served_by},
    {"converter", [](const Side& s) { return std::string(family_name(s.explanation.family)); },
     true},
    {"packages", packages},
    {"routing", [](const Side& s) { return s.explanation.deployment.routing_method; }},
    {"backend", outcome, true},
    {"class", [](const Side& s) { return decided(s) ? s.explanation.decision.experts_class : ""; }},
    {"sizes", [](const Side& s) { return decided(s) ? sizes_text(s.explanation) : ""; }, true},
    {"slices", slices, true},
    {"quant config",
     [](const Side& s) { return decided(s) ? settings_text(*s.explanation.settings) : ""; }},
    {"layout", [](const Side& s) { return decided(s) ? layout_text(s.explanation.row) : ""; },
     true},
    {"beware", notes},
};

std::string said(const std::string& text) { return text.empty() ? "nothing" : text; }

// What the comparison means for a blob.
std::string verdict(const Side& here, const Side& there, const RevisionComparison& comparison) {
  if (comparison.changes.empty()) return "Nothing changes: a blob made for one serves the other.";
  if (!decided(here) || !decided(there)) {
    return fmt::format("{} refuses, so no blob serves both.",
                       decided(here) ? there.rules.name : here.rules.name);
  }
  return comparison.repack ? "A blob made for one does not serve the other: convert again."
                           : "The bytes stay: a blob made for one serves the other.";
}

}  // namespace

RevisionComparison compare_revisions(const Side& here, const Side& there) {
  RevisionComparison out;
  for (const ComparedFact& fact : kFacts) {
    std::string a = fact.say(here);
    std::string b = fact.say(there);
    if (a == b) continue;
    out.repack = out.repack || fact.moves_bytes;
    out.changes.push_back({std::string(fact.what), std::move(a), std::move(b)});
  }
  return out;
}

std::string comparison_text(const Side& here, const Side& there,
                            const RevisionComparison& comparison) {
  std::string out = fmt::format("Rules {} ({}) against {} ({}).\n", here.rules.name,
                                here.rules.commit, there.rules.name, there.rules.commit);
  for (const RevisionChange& change : comparison.changes) {
    out += fmt::format("\n{}\n", change.what);
    for (const auto& [side, text] : {std::pair{&here, &change.here}, {&there, &change.there}}) {
      append_wrapped(out, fmt::format("  {}  ", side->rules.name), 19, said(*text));
    }
  }
  out += "\n";
  append_wrapped(out, "", 0, verdict(here, there, comparison));
  return out;
}

Json comparison_json(const Side& here, const Side& there, const RevisionComparison& comparison) {
  Json out = json_document("explain");
  out["revision"] = here.rules.name;
  out["against"] = there.rules.name;
  out["repack"] = comparison.repack;
  auto& changes = out["changes"] = nlohmann::ordered_json::array();
  for (const RevisionChange& change : comparison.changes) {
    changes.push_back({{"what", change.what}, {"here", change.here}, {"there", change.there}});
  }
  out["verdict"] = verdict(here, there, comparison);
  if (here.error) out["error"] = error_json(*here.error);
  if (!here.error && here.explanation.refusal) out["error"] = error_json(*here.explanation.refusal);
  return out;
}

}  // namespace mxfp4
