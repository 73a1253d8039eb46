// `explain --against`: shows what other releases would decide differently for the same deployment and
// checkpoint, and whether a blob made for one serves the other.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/explain/explain.hpp"
#include "apps/screen.hpp"

namespace mxfp4 {
namespace {

bool decided(const Side& side) { return side.answer().decided(); }

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

std::string slices(const Side& side) {
  const std::optional<bool> by_checkpoint = slices_by_checkpoint(side.answer());
  if (!by_checkpoint) return "";
  return *by_checkpoint ? "ranks begin at multiples of I / ranks"
                        : "ranks begin at multiples of the padded size";
}

// The fact in words; empty if the release has none.
std::string fact_text(RevisionFact fact, const Side& side) {
  const Explanation& e = side.explanation;
  switch (fact) {
    case RevisionFact::kCaller:
      return e.caller == nullptr ? "" : std::string(e.caller->method);
    case RevisionFact::kConverter:
      return std::string(family_name(e.family));
    case RevisionFact::kPackages:
      return fmt::format("{}", fmt::join(e.deployment.libs, " "));
    case RevisionFact::kRouting:
      return e.deployment.routing_method;
    case RevisionFact::kBackend:
      return outcome(side);
    case RevisionFact::kSlices:
      return slices(side);
    default:
      break;
  }
  if (!decided(side)) return "";
  switch (fact) {
    case RevisionFact::kClass:
      return e.decision.experts_class;
    case RevisionFact::kSizes:
      return sizes_text(e);
    case RevisionFact::kLayout:
      return layout_text(e.row);
    default:
      return fmt::format("{}{}{}", fmt::join(e.decision.notes, "; "),
                         e.decision.notes.empty() || e.defects.empty() ? "" : "; ",
                         fmt::join(e.defects, "; "));
  }
}

constexpr std::pair<RevisionFact, std::string_view> kFactNames[] = {
    {RevisionFact::kCaller, "served by"},  {RevisionFact::kConverter, "converter"},
    {RevisionFact::kPackages, "packages"}, {RevisionFact::kRouting, "routing"},
    {RevisionFact::kBackend, "backend"},   {RevisionFact::kClass, "class"},
    {RevisionFact::kSizes, "sizes"},       {RevisionFact::kSlices, "slices"},
    {RevisionFact::kLayout, "layout"},     {RevisionFact::kNotes, "beware"},
};

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

Json side_json(const Side& side) {
  const Explanation& e = side.explanation;
  const bool chosen = !side.error && e.decision.backend;
  Json out = {{"revision", side.rules.name}};
  out["backend"] = chosen ? Json(backend_name(*e.decision.backend)) : Json();
  out["layout"] = decided(side) ? Json(layout_text(e.row)) : Json();
  const bool cut = decided(side) && !e.ranks.empty();
  out["padded_hidden_size"] = cut ? Json(e.ranks.front().padded.hidden_size) : Json();
  out["padded_intermediate_size"] = cut ? Json(e.ranks.front().padded.intermediate_size) : Json();
  return out;
}

// A release's line in the table.
Json line_of(const Json& side, std::string_view bytes) {
  Json line = {
      {"release", side["revision"]}, {"backend", side["backend"]}, {"layout", side["layout"]}};
  line["padded H x I"] = side["padded_hidden_size"].is_null()
                             ? ""
                             : fmt::format("{} x {}", side["padded_hidden_size"].dump(),
                                           side["padded_intermediate_size"].dump());
  line["bytes"] = bytes;
  return line;
}

}  // namespace

Json comparison_json(const Side& here, const std::vector<Side>& others) {
  Json out = json_document("explain");
  out.update(side_json(here));
  Json& against = out["against"] = Json::array();
  for (const Side& there : others) {
    const RevisionDifference difference = compare_revisions(here.answer(), there.answer());
    Json& item = against.emplace_back(side_json(there));
    item["repack"] = difference.repack;
    Json& changes = item["changes"] = Json::array();
    for (const RevisionFact fact : difference.facts) {
      const auto* name =
          std::ranges::find(kFactNames, fact, [](const auto& row) { return row.first; });
      changes.push_back({{"what", name->second},
                         {"here", fact_text(fact, here)},
                         {"there", fact_text(fact, there)}});
    }
    item["verdict"] = verdict(here, there, difference);
    item["error"] = decided(there) ? Json() : Json(outcome(there));
    item["same_bytes"] = share_blobs(here.answer(), there.answer());
  }
  if (here.error) out["error"] = error_json(*here.error);
  if (!here.error && here.explanation.refusal) out["error"] = error_json(*here.explanation.refusal);
  return out;
}

std::string comparison_text(const Console& console, const Json& document) {
  const Json& against = document["against"];
  const bool refused = document.contains("error");
  Json lines = Json::array({line_of(document, refused ? "refused" : "as asked")});
  for (auto item = against.rbegin(); item != against.rend(); ++item) {
    const std::string_view bytes = (*item)["same_bytes"] ? "same" : refused ? "" : "other";
    lines.push_back(line_of(*item, (*item)["error"].is_null() ? bytes : "refused"));
  }
  std::string out =
      table_text(console, lines, {"release", "backend", "layout", "padded H x I", "bytes"});
  if (against.size() != 1) return out;
  const Json& there = against.front();
  for (const Json& change : there["changes"]) {
    Json sides;
    for (const auto& [side, text] : {std::pair{&document, "here"}, {&there, "there"}}) {
      sides[(*side)["revision"].get<std::string>()] =
          change[text].empty() ? "nothing" : change[text];
    }
    out +=
        fmt::format("\n{}\n{}", change["what"].get<std::string>(), fields_text(console, sides, 2));
  }
  return out + fmt::format("\n{}\n", there["verdict"].get<std::string>());
}

}  // namespace mxfp4
