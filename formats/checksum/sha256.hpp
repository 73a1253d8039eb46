// SHA-256 (FIPS 180-4), for the optional "sha256" of a tensor in a raw manifest. Written here
// because no package that the build uses has it, and a cryptographic library would be a dependency
// for only this field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

using Sha256Digest = std::array<std::byte, 32>;

[[nodiscard]] Sha256Digest sha256(ConstBytes data);
// The same of `bytes` bytes, which part(offset, count) gives, in order.
[[nodiscard]] Sha256Digest sha256(int64_t bytes,
                                  const std::function<ConstBytes(int64_t, int64_t)>& part);

}  // namespace mxfp4
