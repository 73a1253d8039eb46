// `explain --against`: what other releases would decide for the same deployment and checkpoint, and
// whether a blob made for one serves the other, which its recipes say.
#include <fmt/format.h>

#include "apps/explain/explain.hpp"
#include "apps/screen.hpp"

namespace mxfp4 {
namespace {

// Why the release makes no blob; null if it makes one.
const Error* refusal_of(const Side& side) {
  if (side.error) return &*side.error;
  return side.explanation.refusal ? &*side.explanation.refusal : nullptr;
}

// Where the bytes differ first, "layout: triton/hopper here, triton/hopper-s4 there"; empty if they do
// not. Without a checkpoint there are no recipes, and what sizes are rounded to stands for them.
std::string difference_text(const Side& here, const Side& there) {
  const auto words = [](std::string_view what, const auto& one, const auto& other) {
    return one == other ? "" : fmt::format("{}: {} here, {} there", what, one, other);
  };
  const Explanation& a = here.explanation;
  const Explanation& b = there.explanation;
  // An engine takes a blob for the backend that it chooses, whatever the bytes.
  std::string differs =
      words("backend", backend_name(a.target.backend), backend_name(b.target.backend));
  for (size_t i = 0; i < std::min(a.recipes.size(), b.recipes.size()) && differs.empty(); ++i) {
    const auto part = recipe_difference(a.recipes[i], b.recipes[i]);
    if (part) differs = words(part->what, part->here, part->there);
  }
  if (differs.empty()) differs = words("recipes", a.recipes.size(), b.recipes.size());
  if (!differs.empty() || !a.recipes.empty()) return differs;
  differs = words("layout", layout_text(a.row), layout_text(b.row));
  if (differs.empty()) differs = words("converter", family_name(a.family), family_name(b.family));
  return differs.empty() ? words("sizes", sizes_text(a), sizes_text(b)) : differs;
}

Json side_json(const Side& side) {
  const Explanation& e = side.explanation;
  const bool decided = refusal_of(side) == nullptr;
  const bool cut = decided && !e.ranks.empty();
  Json out = {{"revision", side.rules.name}};
  out["backend"] =
      !side.error && e.decision.backend ? Json(backend_name(*e.decision.backend)) : Json();
  out["layout"] = decided ? Json(layout_text(e.row)) : Json();
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
  const Error* refused = refusal_of(here);
  Json& against = out["against"] = Json::array();
  for (const Side& there : others) {
    Json& item = against.emplace_back(side_json(there));
    const Error* error = refusal_of(there);
    const bool both = refused == nullptr && error == nullptr;
    const std::string differs = both ? difference_text(here, there) : "";
    item["error"] = error == nullptr ? Json() : Json(error->what());
    item["same_bytes"] = both && differs.empty();
    item["difference"] = text_or_null(differs);
  }
  if (refused != nullptr) out["error"] = error_json(*refused);
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
  const Json& there = against.front();
  if (against.size() != 1 || refused) return out;
  if (there["same_bytes"]) return out + "\nA blob made for one serves the other.\n";
  Json why = {{"refused", there["error"]}, {"differs", there["difference"]}};
  return out + "\n" + fields_text(console, why) +
         "\nA blob made for one does not serve the other: convert again.\n";
}

}  // namespace mxfp4
