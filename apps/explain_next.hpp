// The command to type after `explain`.
#pragma once

#include <string>
#include <vector>

#include "apps/options.hpp"
#include "formats/conversion/alternatives.hpp"

namespace mxfp4 {

// A command that is known to succeed, in parts that stay on one line: the conversion, with
// --allow-known-defects where it needs that; where it is refused, the conversion after the fewest
// changes of flags and variables with which it is not; else a look at the tables or the input.
[[nodiscard]] std::vector<std::string> next_command(const ExplainOptions& options,
                                                    ConversionRequest request,
                                                    const OpenedCheckpoint* checkpoint,
                                                    const Conversion& conversion);

// The conversion after these changes.
[[nodiscard]] std::vector<std::string> convert_command(const ExplainOptions& options,
                                                       const ConversionRequest& request,
                                                       const OpenedCheckpoint* checkpoint,
                                                       const Conversion& conversion,
                                                       const std::vector<Change>& changes);

}  // namespace mxfp4
