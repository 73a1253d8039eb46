// SHA-256 (FIPS 180-4), for the optional checksums of raw manifests.
#pragma once

#include <array>
#include <cstddef>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

using Sha256Digest = std::array<std::byte, 32>;

[[nodiscard]] Sha256Digest sha256(ConstBytes data);

}  // namespace mxfp4
