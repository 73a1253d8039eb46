// The command to type after `explain`.
#pragma once

#include <string>
#include <vector>

#include "apps/options.hpp"
#include "apps/request.hpp"
#include "formats/decision/alternatives.hpp"

namespace mxfp4 {

struct NextCommand {
  std::vector<std::string> parts;    // each stays on one line
  std::string input;                 // the checkpoint, as a word for the shell
  std::vector<std::string> changed;  // what is not as it was asked for, in words
};

// The command of next_step().
[[nodiscard]] NextCommand next_command(const ExplainOptions& options,
                                       const ConversionRequest& request,
                                       const OpenedCheckpoint* checkpoint,
                                       const DecidedConversion& conversion);

}  // namespace mxfp4
