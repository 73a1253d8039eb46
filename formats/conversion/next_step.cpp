#include "formats/conversion/next_step.hpp"

#include <utility>

namespace mxfp4 {
namespace {

bool works_with_defects(ConversionRequest request, const Conversion& conversion,
                        const OpenedCheckpoint* checkpoint) {
  if (conversion.defects.empty()) return false;
  request.allow_known_defects = true;
  return !decide_conversion(request, checkpoint).refusal;
}

}  // namespace

NextStep next_step(const ConversionRequest& request, const Conversion& conversion,
                   const OpenedCheckpoint* checkpoint) {
  if (!conversion.refusal) return {};
  if (works_with_defects(request, conversion, checkpoint)) return {.allow_known_defects = true};
  if (!request.backend) {
    std::vector<Change> changes = ways_out(request, conversion, checkpoint);
    if (!changes.empty()) return {.changes = std::move(changes)};
  }
  const bool sizes = conversion.layout != nullptr && checkpoint != nullptr;
  return {.command = sizes ? NextStep::Command::kInspect : NextStep::Command::kListBackends};
}

}  // namespace mxfp4
