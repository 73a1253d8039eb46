// UTF-8, byte by byte.
#pragma once

#include <cstddef>
#include <string_view>

namespace mxfp4 {

// Bytes of the well-formed UTF-8 sequence at the front of the text (Unicode 15, table 3-7); 0 if
// there is none.
[[nodiscard]] size_t utf8_sequence(std::string_view text);

}  // namespace mxfp4
