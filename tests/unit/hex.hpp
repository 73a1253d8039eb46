// Digests as the tables of testdata/ spell them.
#pragma once

#include <string>

#include "formats/checksum/sha256.hpp"

namespace mxfp4::test {

// Lower-case hexadecimal.
[[nodiscard]] inline std::string hex(const Sha256Digest& digest) {
  std::string out;
  for (std::byte b : digest) {
    const char* digits = "0123456789abcdef";
    out += {digits[std::to_integer<int>(b) / 16], digits[std::to_integer<int>(b) % 16]};
  }
  return out;
}

}  // namespace mxfp4::test
