// Amounts of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace mxfp4 {

// "1.50 GiB": three significant digits, in powers of 1024.
[[nodiscard]] std::string human_bytes(int64_t bytes);

}  // namespace mxfp4
