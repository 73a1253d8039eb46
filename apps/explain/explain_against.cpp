#include "apps/explain/explain_against.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/text_layout.hpp"

namespace mxfp4 {
namespace {

// How a fact is put into words; `say` gives one side's, or an empty text if it has none.
struct ScreenRow {
  RevisionFact fact;
  std::string_view what;
  std::string (*say)(const Side&);
};

std::string outcome(const Side& side) {
  if (side.error) return fmt::format("refused: {}", side.error->what());
  const Decision& decision = side.explanation.decision;
  if (!decision.backend) {
    const std::string_view colon = decision.error_type.empty() ? "" : ": ";
    return fmt::format("refused: {}{}{}", decision.error_type, colon, decision.error_message);
  }
  if (side.explanation.refusal) {
    return fmt::format("refused: {}", side.explanation.refusal->what());
  }
  return std::string(backend_name(*decision.backend));
}

bool decided(const Side& side) { return side.answer().decided(); }

std::string served_by(const Side& side) {
  const CallerRow* caller = side.explanation.caller;
  return caller == nullptr ? "" : std::string(caller->method);
}

std::string packages(const Side& side) {
  return fmt::format("{}", fmt::join(side.explanation.deployment.libs, " "));
}

std::string slices(const Side& side) {
  const std::optional<bool> by_checkpoint = slices_by_checkpoint(side.answer());
  if (!by_checkpoint) return "";
  return *by_checkpoint ? "ranks begin at multiples of I / ranks"
                        : "ranks begin at multiples of the padded size";
}

std::string notes(const Side& side) {
  if (!decided(side)) return "";
  std::vector<std::string> all = side.explanation.decision.notes;
  all.insert(all.end(), side.explanation.defects.begin(), side.explanation.defects.end());
  return fmt::format("{}", fmt::join(all, "; "));
}

constexpr ScreenRow kFacts[] = {
    {RevisionFact::kCaller, "served by", served_by},
    {RevisionFact::kConverter, "converter",
     [](const Side& s) { return std::string(family_name(s.explanation.family)); }},
    {RevisionFact::kPackages, "packages", packages},
    {RevisionFact::kRouting, "routing",
     [](const Side& s) { return s.explanation.deployment.routing_method; }},
    {RevisionFact::kBackend, "backend", outcome},
    {RevisionFact::kClass, "class",
     [](const Side& s) { return decided(s) ? s.explanation.decision.experts_class : ""; }},
    {RevisionFact::kSizes, "sizes",
     [](const Side& s) { return decided(s) ? sizes_text(s.explanation) : ""; }},
    {RevisionFact::kSlices, "slices", slices},
    {RevisionFact::kSettings, "quant config",
     [](const Side& s) {
       return decided(s) && s.explanation.settings ? settings_text(*s.explanation.settings) : "";
     }},
    {RevisionFact::kLayout, "layout",
     [](const Side& s) { return decided(s) ? layout_text(s.explanation.row) : ""; }},
    {RevisionFact::kNotes, "beware", notes},
};

// One fact that differs.
struct RevisionChange {
  std::string_view what;
  std::string here;
  std::string there;
};

std::vector<RevisionChange> changes_of(const Side& here, const Side& there,
                                       const RevisionDifference& difference) {
  std::vector<RevisionChange> changes;
  for (const RevisionFact fact : difference.facts) {
    const ScreenRow& words = *std::ranges::find(kFacts, fact, &ScreenRow::fact);
    changes.push_back({words.what, words.say(here), words.say(there)});
  }
  return changes;
}

std::string said(const std::string& text) { return text.empty() ? "nothing" : text; }

// "vllm-0.33.0 (4ba787ec9)"
std::string name_of(const RuleSet& rules) {
  if (rules.commit.empty()) return std::string(rules.name);
  return fmt::format("{} ({})", rules.name, rules.commit);
}

// Says what the comparison means for a blob.
std::string verdict(const Side& here, const Side& there, const RevisionDifference& difference) {
  switch (difference.verdict) {
    case RevisionVerdict::kOneRefuses:
      return fmt::format("{} refuses, so no blob serves both.",
                         decided(here) ? there.rules.name : here.rules.name);
    case RevisionVerdict::kOtherBytes:
      return "A blob made for one does not serve the other: convert again.";
    case RevisionVerdict::kBytesStay:
      return "The bytes stay: a blob made for one serves the other.";
    case RevisionVerdict::kNothingChanges:
      break;
  }
  return "Nothing changes: a blob made for one serves the other.";
}

}  // namespace

std::string comparison_text(const Side& here, const Side& there) {
  const RevisionDifference difference = compare_revisions(here.answer(), there.answer());
  std::string out =
      fmt::format("Rules {} against {}.\n", name_of(here.rules), name_of(there.rules));
  for (const RevisionChange& change : changes_of(here, there, difference)) {
    out += fmt::format("\n{}\n", change.what);
    for (const auto& [side, text] : {std::pair{&here, &change.here}, {&there, &change.there}}) {
      append_wrapped(out, fmt::format("  {}  ", side->rules.name), 19, said(*text));
    }
  }
  out += "\n";
  append_wrapped(out, "", 0, verdict(here, there, difference));
  return out;
}

Json comparison_json(const Side& here, const Side& there) {
  const RevisionDifference difference = compare_revisions(here.answer(), there.answer());
  Json out = json_document("explain");
  out["revision"] = here.rules.name;
  out["against"] = there.rules.name;
  out["repack"] = difference.repack;
  auto& changes = out["changes"] = Json::array();
  for (const RevisionChange& change : changes_of(here, there, difference)) {
    changes.push_back({{"what", change.what}, {"here", change.here}, {"there", change.there}});
  }
  out["verdict"] = verdict(here, there, difference);
  if (here.error) out["error"] = error_json(*here.error);
  if (!here.error && here.explanation.refusal) out["error"] = error_json(*here.explanation.refusal);
  return out;
}

}  // namespace mxfp4
