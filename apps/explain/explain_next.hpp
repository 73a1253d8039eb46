// The command to type after `explain`.
#pragma once

#include <string>
#include <vector>

#include "apps/options.hpp"
#include "apps/request.hpp"
#include "formats/decision/alternatives.hpp"

namespace mxfp4 {

// The command of next_step(), in parts that each stay on one line.
[[nodiscard]] std::vector<std::string> next_command(const ExplainOptions& options,
                                                    const ConversionRequest& request,
                                                    const OpenedCheckpoint* checkpoint,
                                                    const DecidedConversion& conversion);

}  // namespace mxfp4
