// What to do after a decision: the command that is known to work, as a value. Its words and flags
// are the caller's.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/conversion/alternatives.hpp"
#include "formats/conversion/working_sizes.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

struct NextStep {
  enum class Command : uint8_t {
    kConvert,       // decided again with what stands below, and not refused
    kInspect,       // the checkpoint's sizes stand in the way
    kListBackends,  // no backend or layout: a look at the tables
  };
  Command command = Command::kConvert;
  std::vector<Change> changes{};     // of flags and variables, for kConvert
  bool allow_known_defects = false;  // for kConvert
  const Release* release = nullptr;  // for kConvert: of the rules, where they have to be others
  WorkingSizes sizes{};  // for kConvert: one value, where the asked size has to be another
};

// The conversion that was decided; refused, the same with known defects allowed; then with the
// nearest of the sizes that work, a smaller one if there is one; then after the fewest changes with
// which it is not refused; then by the rules of the newest release before the asked one that do not
// refuse. A backend that was asked for is not changed. `working` is sizes_that_work() for these.
[[nodiscard]] NextStep next_step(const ConversionRequest& request, const Conversion& conversion,
                                 const OpenedCheckpoint* checkpoint, const WorkingSizes& working);

}  // namespace mxfp4
