// How the plans of two results differ, in the words of the flags that decide it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// "--level: 1, now 3", data and checksums aside; empty: the two are of the same plan.
[[nodiscard]] std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now);

// The flags that two runs were given differently, by name: "--level: 1, now not given; ..."; empty:
// none. An empty value counts as not given.
[[nodiscard]] std::string given_differences(const std::map<std::string, std::string>& then,
                                            const std::map<std::string, std::string>& now);

}  // namespace mxfp4
