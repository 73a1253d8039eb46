#include "formats/decision/next_step.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

bool works_with_defects(ConversionRequest request, const Conversion& conversion,
                        const OpenedCheckpoint* checkpoint) {
  if (conversion.defects.empty()) return false;
  request.allow_known_defects = true;
  return !decide_conversion(request, checkpoint).refusal;
}

// The newest older release that converts for the same backend. Null if there is none, or if a
// layout is not what is missing.
const Release* older_release(ConversionRequest request, const Conversion& conversion,
                             const OpenedCheckpoint* checkpoint) {
  if (conversion.row == nullptr || conversion.row->layout != nullptr) return nullptr;
  const std::span<const Release* const> all = releases_of(request.rules->engine);
  auto at = std::ranges::find(all, request.rules->name, &Release::name);
  while (at != all.begin()) {
    const Release* release = *--at;
    if (release->version.empty()) continue;
    request.rules = &rules_of(*release);
    try {
      const Conversion there = decide_conversion(request, checkpoint);
      if (!there.refusal && there.decision.backend == conversion.decision.backend) return release;
    } catch (const Error&) {
      continue;  // the request has a name that this release does not know
    }
  }
  return nullptr;
}

}  // namespace

NextStep next_step(const ConversionRequest& request, const Conversion& conversion,
                   const OpenedCheckpoint* checkpoint, const WorkingSizes& working) {
  if (!conversion.refusal) return {};
  if (works_with_defects(request, conversion, checkpoint)) return {.allow_known_defects = true};
  if (!working.values.empty()) {
    const int64_t asked = (request.deployment.*working.size).value_or(1);
    const auto above = std::ranges::upper_bound(working.values, asked);
    return {.sizes = {working.size, {above == working.values.begin() ? *above : *(above - 1)}}};
  }
  if (!request.backend) {
    std::vector<Change> changes = ways_out(request, conversion, checkpoint);
    if (!changes.empty()) return {.changes = std::move(changes)};
  }
  if (const Release* release = older_release(request, conversion, checkpoint)) {
    return {.release = release};
  }
  const bool sizes = conversion.layout != nullptr && checkpoint != nullptr;
  return {.command = sizes ? NextStep::Command::kInspect : NextStep::Command::kListBackends};
}

}  // namespace mxfp4
