// Steps of which none looks beyond its own rows, run band by band: what lies between two of them
// then stays in the second-level cache, and takes no more memory than a band.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/steps/step.hpp"

namespace mxfp4 {

struct Bands {
  int64_t count = 1;        // equal parts of the input, which give equal parts of the output
  std::vector<Step> steps;  // of one of them
};

// `steps` follow each other. One band of all when there is no count at which bands are whole lines
// of the caches and small.
[[nodiscard]] Bands cut_into_bands(const std::vector<Step>& steps);

}  // namespace mxfp4
