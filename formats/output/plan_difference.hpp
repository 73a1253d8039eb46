// Says how the plans of two results differ, in terms of the flags that decide them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// One text for each difference, "--level: 1, now 3". What depends on the data is not compared.
// Empty if the two manifests are of the same plan.
[[nodiscard]] std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now);

// The flags that differ between two runs, by name: "--level: 1, now not given; ..."; empty if none
// do. An empty value counts as not given.
[[nodiscard]] std::string given_differences(const std::map<std::string, std::string>& then,
                                            const std::map<std::string, std::string>& now);

}  // namespace mxfp4
