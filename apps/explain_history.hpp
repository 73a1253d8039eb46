// `explain --history`: one deployment through every release: what each decides, and which older
// releases' blobs it still takes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/explain_against.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

// A revision's answer.
struct HistoryRow {
  const Release* release = nullptr;
  Side side;
  // Older revisions whose blobs for this deployment serve this one, oldest first. Empty where the
  // revision decides on no blob.
  std::vector<const Release*> takes{};
};

// `rows` lists revisions oldest first, with their sides; fills in what each takes.
void find_takes(std::span<HistoryRow> rows);

// Newest first.
[[nodiscard]] std::string history_text(const Console& console, std::span<const HistoryRow> rows);
[[nodiscard]] Json history_json(std::span<const HistoryRow> rows);

}  // namespace mxfp4
