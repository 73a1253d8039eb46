// SHA-256 (FIPS 180-4), for the optional "sha256" of a tensor in a raw manifest. Written out because
// none of the packages that the build uses (scripts/install-packages) offers it, and a cryptographic
// library would be one more dependency for this field alone.
#pragma once

#include <array>
#include <cstddef>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

using Sha256Digest = std::array<std::byte, 32>;

[[nodiscard]] Sha256Digest sha256(ConstBytes data);

}  // namespace mxfp4
