// A fingerprint tells one model's weights from another's quickly, so that people and manifests can
// name a source. It proves nothing: it can be forged, and two models that differ in few places may
// share it.
#pragma once

#include <string>

#include "formats/source/source.hpp"

namespace mxfp4 {

// XXH3-128 (hex) of the names and byte counts of all tensors, in the order of their names, and of
// the first 4 KiB of up to 64 of them, evenly spaced. The same tensors give the same fingerprint in
// every container. Throws Error::input naming file and tensor.
[[nodiscard]] std::string fingerprint_of(Source& source);

}  // namespace mxfp4
