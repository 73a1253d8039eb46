// Estimates the size and time of a conversion: runs a few of its jobs without writing them.
#pragma once

#include <cstdint>

#include "formats/conversion/repack.hpp"

namespace mxfp4 {

struct RepackEstimate {
  int64_t stored_bytes = 0;  // of layer files, after compression
  double seconds = 0;        // for reading, repacking and compressing, without writing
};

// Runs the first job of every tensor of one layer file, in this thread, for about half a second at
// most. One layer is enough: tensors of one name compress alike in all layers. Throws Error::input.
[[nodiscard]] RepackEstimate estimate_repack(const OpenedCheckpoint& checkpoint,
                                             const Conversion& conversion, const RepackPlan& plan,
                                             const RepackOptions& options);

}  // namespace mxfp4
