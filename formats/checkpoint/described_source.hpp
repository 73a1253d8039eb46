// A blob's checkpoint as far as one rank's manifest describes it: configuration, names, types and
// shapes of the experts' tensors, and no data. Enough to decide a conversion.
#pragma once

#include <memory>

#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Throws Error::input for a blob that does not say how its
// checkpoint names the experts.
[[nodiscard]] std::shared_ptr<Source> open_described_source(const Manifest& manifest);

// What a manifest says of the checkpoint behind its blob.
[[nodiscard]] SourceOrigin origin_of(const Manifest& manifest);

}  // namespace mxfp4
