// Finds the command that works after a decision, as a value; the caller puts it into words and
// flags.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/decision/alternatives.hpp"
#include "formats/decision/working_sizes.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

struct NextStep {
  enum class Command : uint8_t {
    kConvert,       // with the members below; proven by deciding again
    kInspect,       // the checkpoint's sizes are the obstacle
    kListBackends,  // there is no backend or no layout
  };
  Command command = Command::kConvert;
  std::vector<Change> changes{};     // of flags and variables, for kConvert
  bool allow_known_defects = false;  // for kConvert
  const Release* release = nullptr;  // for kConvert: whose rules to take; null: no change
  WorkingSizes sizes{};              // for kConvert: one value of the size to change, or none
};

// The conversion that was decided, if it is not refused. Else the first of these that works: known
// defects allowed; the nearest of the sizes that work, a smaller one if there is one; the fewest
// changes (not for a forced backend); the rules of the newest older release. `working` is
// sizes_that_work() for the same arguments.
[[nodiscard]] NextStep next_step(const ConversionRequest& request, const Conversion& conversion,
                                 const OpenedCheckpoint* checkpoint, const WorkingSizes& working);

}  // namespace mxfp4
