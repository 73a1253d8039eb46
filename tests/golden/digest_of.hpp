// SHA-256 (FIPS 180-4) for the golden digests, written apart from the library.
#pragma once

#include <string>

#include "lib/core/tensor.hpp"

namespace mxfp4::test {

// Lower-case hexadecimal.
[[nodiscard]] std::string digest_of(ConstBytes bytes);

}  // namespace mxfp4::test
