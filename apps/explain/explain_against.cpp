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

namespace {

// Null where the release chooses no backend, or makes no blob.
std::string_view backend_of(const Side& side) {
  const bool chosen = !side.error && side.explanation.decision.backend;
  return chosen ? backend_name(*side.explanation.decision.backend) : std::string_view();
}

const LayerDims* padded_of(const Side& side) {
  const bool cut = decided(side) && !side.explanation.ranks.empty();
  return cut ? &side.explanation.ranks.front().padded : nullptr;
}

std::string_view bytes_word(const Side& here, const Side& there) {
  if (!decided(there)) return "refused";
  if (!decided(here)) return "";
  return share_blobs(here.answer(), there.answer()) ? "same" : "other";
}

std::vector<std::string> cells(const Side& here, const Side& side, std::string_view bytes) {
  const LayerDims* padded = padded_of(side);
  return {std::string(side.rules.name), std::string(backend_of(side)),
          decided(side) ? layout_text(side.explanation.row) : "",
          padded == nullptr
              ? ""
              : fmt::format("{} x {}", padded->hidden_size, padded->intermediate_size),
          std::string(&here == &side && decided(side) ? "as asked" : bytes)};
}

Json side_json(const Side& side) {
  const LayerDims* padded = padded_of(side);
  Json out = {{"revision", side.rules.name}};
  out["backend"] = text_or_null(backend_of(side));
  out["layout"] = decided(side) ? Json(layout_text(side.explanation.row)) : Json();
  out["padded_hidden_size"] = padded == nullptr ? Json() : Json(padded->hidden_size);
  out["padded_intermediate_size"] = padded == nullptr ? Json() : Json(padded->intermediate_size);
  return out;
}

}  // namespace

std::string comparison_table(const Console& console, const Side& here,
                             const std::vector<Side>& others) {
  std::vector<std::vector<std::string>> lines = {
      {"release", "backend", "layout", "padded H x I", "bytes"}};
  lines.push_back(cells(here, here, bytes_word(here, here)));
  for (auto other = others.rbegin(); other != others.rend(); ++other) {
    lines.push_back(cells(here, *other, bytes_word(here, *other)));
  }
  return console.table(lines);
}

Json comparison_json(const Side& here, const std::vector<Side>& others) {
  Json out = json_document("explain");
  out.update(side_json(here));
  auto& against = out["against"] = Json::array();
  for (const Side& there : others) {
    const RevisionDifference difference = compare_revisions(here.answer(), there.answer());
    auto& item = against.emplace_back(side_json(there));
    item["repack"] = difference.repack;
    auto& changes = item["changes"] = Json::array();
    for (const RevisionChange& change : changes_of(here, there, difference)) {
      changes.push_back({{"what", change.what}, {"here", change.here}, {"there", change.there}});
    }
    item["verdict"] = verdict(here, there, difference);
    item["error"] = decided(there) ? Json() : Json(outcome(there));
  }
  if (here.error) out["error"] = error_json(*here.error);
  if (!here.error && here.explanation.refusal) out["error"] = error_json(*here.explanation.refusal);
  return out;
}

}  // namespace mxfp4
