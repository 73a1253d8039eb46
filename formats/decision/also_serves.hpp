// One blob, two engines: the releases of other engines whose rules make the same bytes.
#pragma once

#include <map>
#include <string>

#include "formats/decision/decide.hpp"

namespace mxfp4 {

// The releases of every other engine than the conversion's that would take its blob on the same
// machine, with the same parallel sizes and variables: "sglang-0.5.23" with the value of
// --moe-backend that makes the release choose the blob's backend, "auto" where it does so by
// itself. For every rank of the model: the same layout and knobs, slices, padded sizes and padding.
// Reads no data. Empty for a refused conversion, one that stops at the loaded layout, and a
// checkpoint without a config.
[[nodiscard]] std::map<std::string, std::string> also_serves(const ConversionRequest& request,
                                                             const Conversion& conversion,
                                                             const OpenedCheckpoint& checkpoint);

}  // namespace mxfp4
