// The command to type after `explain`.
#pragma once

#include <string>
#include <vector>

#include "apps/options.hpp"
#include "apps/request.hpp"

namespace mxfp4 {

struct NextCommand {
  std::vector<std::string> parts;    // each stays on one line
  std::string input;                 // the checkpoint, as a word for the shell
  std::vector<std::string> changed;  // what is not as it was asked for, in words
};

// The conversion as it was asked for. Of one that is refused: with a parallel size that works; else
// what shows the obstacle, the checkpoint's sizes or the table of backends.
[[nodiscard]] NextCommand next_command(const ExplainOptions& options, bool has_checkpoint,
                                       const DecidedConversion& conversion);

}  // namespace mxfp4
