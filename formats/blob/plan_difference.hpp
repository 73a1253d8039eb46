// Says how the plans of two results differ, in terms of the flags that decide them.
#pragma once

#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// One text for each difference, "--level: 1, now 3". What depends on the data is not compared.
// Empty if the two manifests are of the same plan.
[[nodiscard]] std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now);

}  // namespace mxfp4
