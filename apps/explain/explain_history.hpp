// `explain --history`: shows what every release decides for one deployment, and which older
// releases' blobs it still takes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/explain/explain_against.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

// A revision's answer.
struct HistoryRow {
  const Release* release = nullptr;
  Side side;
  // Older revisions whose blobs for this deployment serve this revision, too, oldest first. Empty
  // if this revision refuses.
  std::vector<const Release*> takes{};
};

// Fills in HistoryRow::takes. `rows` lists revisions oldest first.
void find_takes(std::span<HistoryRow> rows);

// Both show the newest revision first.
[[nodiscard]] std::string history_text(const Console& console, std::span<const HistoryRow> rows);
[[nodiscard]] Json history_json(std::span<const HistoryRow> rows);

}  // namespace mxfp4
