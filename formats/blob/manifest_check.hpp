// Whether the fields of a manifest agree with each other.
#pragma once

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// Names of files and tensors, the rank's numbers and share, and the sum of all sizes. Throws
// Error::input without the file's name.
void check_manifest(const Manifest& manifest);

}  // namespace mxfp4
