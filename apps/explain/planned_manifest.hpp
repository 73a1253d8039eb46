// The manifest that convert would write, before anything is written.
#pragma once

#include "formats/blob/manifest.hpp"
#include "formats/decision/decide.hpp"

namespace mxfp4 {

// The manifest of the conversion's first rank, without compression; checksums are kNoChecksum,
// sizes of files 0. Needs a conversion without a refusal. Throws what plan_repack() throws.
[[nodiscard]] Manifest planned_manifest(const OpenedCheckpoint& checkpoint,
                                        const Conversion& conversion);

}  // namespace mxfp4
