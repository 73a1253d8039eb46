// Cuts steps that work row by row into bands of rows. Run band by band, the bytes between two steps
// stay in the second-level cache and take no more memory than a band.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/steps/step.hpp"

namespace mxfp4 {

struct Bands {
  int64_t count = 1;        // equal parts of the input, which give equal parts of the output
  std::vector<Step> steps;  // of one part
};

// Each of `steps` takes the output of the one before. One band when no number of bands gives small
// bands of whole cache lines.
[[nodiscard]] Bands cut_into_bands(const std::vector<Step>& steps);

}  // namespace mxfp4
