// How the plans of two results differ, in the words of the flags that decide it.
#pragma once

#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// "--level: 1, now 3", data and checksums aside; empty: the two are of the same plan.
[[nodiscard]] std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now);

}  // namespace mxfp4
