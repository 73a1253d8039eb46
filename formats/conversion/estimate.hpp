// How large and how long a conversion will be, from a few of its jobs that are run and not written.
#pragma once

#include <cstdint>

#include "formats/conversion/repack.hpp"

namespace mxfp4 {

struct RepackEstimate {
  int64_t stored_bytes = 0;  // of layer files, compressed where they will be
  double seconds = 0;        // reading, repacking and compressing; writing aside
};

// Runs the first job of every tensor of one layer file, in this thread, until half a second is over:
// tensors of one name compress alike in all layers. Throws Error::input.
[[nodiscard]] RepackEstimate estimate_repack(const OpenedCheckpoint& checkpoint,
                                             const Conversion& conversion, const RepackPlan& plan,
                                             const RepackOptions& options);

}  // namespace mxfp4
