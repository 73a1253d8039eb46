#include "apps/explain/explain_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/text_layout.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

std::string refusal_of(const Side& side) {
  if (side.error) return side.error->what();
  return side.explanation.refusal ? side.explanation.refusal->what() : "";
}

std::string_view backend_of(const Side& side) {
  const bool chosen = !side.error && side.explanation.decision.backend;
  return chosen ? backend_name(*side.explanation.decision.backend) : std::string_view();
}

// The padded sizes of rank 0's blob; null without a checkpoint.
const LayerDims* padded_of(const Side& side) {
  const bool cut = !side.error && !side.explanation.ranks.empty();
  return cut ? &side.explanation.ranks.front().padded : nullptr;
}

std::string_view short_name(const Release& release) {
  return release.version.empty() ? release.name : release.version;
}

// The names of these releases; consecutive ones become a range, "0.29.0 to 0.32.0".
std::string ranges_of(std::span<const Release* const> taken) {
  std::string out;
  if (taken.empty()) return out;
  const std::span<const Release* const> all = releases_of(taken.front()->engine);
  for (auto at = taken.begin(); at != taken.end();) {
    auto expected = std::ranges::find(all, *at);
    auto last = at;
    while (last != taken.end() && expected != all.end() && *last == *expected) ++last, ++expected;
    out += out.empty() ? "" : ", ";
    out += short_name(**at);
    if (last - at > 1) out += fmt::format(" to {}", short_name(**(last - 1)));
    at = last;
  }
  return out;
}

std::vector<std::string> cells(const HistoryRow& row) {
  const std::string refusal = refusal_of(row.side);
  const std::string backend(backend_of(row.side));
  const LayerDims* padded = padded_of(row.side);
  if (!refusal.empty()) {
    return {std::string(row.release->name), backend.empty() ? "-" : backend, "", "refused"};
  }
  const std::string older = ranges_of(row.takes);
  return {std::string(row.release->name), backend,
          padded == nullptr
              ? ""
              : fmt::format("{} x {}", padded->hidden_size, padded->intermediate_size),
          older.empty() ? "no older release" : older};
}

}  // namespace

void find_takes(std::span<HistoryRow> rows) {
  for (size_t later = 0; later < rows.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      if (share_blobs(rows[earlier].side.answer(), rows[later].side.answer())) {
        rows[later].takes.push_back(rows[earlier].release);
      }
    }
  }
}

std::string history_text(const Console& console, std::span<const HistoryRow> rows) {
  std::vector<std::vector<std::string>> lines = {
      {"release", "backend", "padded H x I", "takes blobs of"}};
  std::transform(rows.rbegin(), rows.rend(), std::back_inserter(lines), cells);
  return console.table(lines);
}

Json history_json(std::span<const HistoryRow> rows) {
  Json out = json_document("explain");
  auto& history = out["history"] = Json::array();
  std::for_each(rows.rbegin(), rows.rend(), [&](const HistoryRow& row) {
    const std::string backend(backend_of(row.side));
    const LayerDims* padded = padded_of(row.side);
    auto& item = history.emplace_back();
    item["revision"] = row.release->name;
    item["date"] = row.release->date;
    item["backend"] = text_or_null(backend);
    const bool packed = refusal_of(row.side).empty();
    const Layout* layout = packed ? row.side.explanation.layout : nullptr;
    item["layout"] = text_or_null(layout == nullptr ? std::string_view() : id_of(*layout));
    item["padded_hidden_size"] = padded == nullptr ? Json() : Json(padded->hidden_size);
    item["padded_intermediate_size"] = padded == nullptr ? Json() : Json(padded->intermediate_size);
    auto& takes = item["takes_blobs_of"] = Json::array();
    for (const Release* release : row.takes) takes.push_back(release->name);
    item["error"] = text_or_null(refusal_of(row.side));
  });
  return out;
}

}  // namespace mxfp4
