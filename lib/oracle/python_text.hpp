// Values as Python writes and reads them: the reference's messages and variables are compared with
// ours character by character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// repr() of a list of strings: ['A', 'B'].
[[nodiscard]] std::string python_list(const std::vector<std::string_view>& items);
// repr() of a string without quotes or characters that Python escapes, such as the engine's own names.
[[nodiscard]] std::string python_repr(std::string_view text);

// Whether int(text) is not zero. Throws Error::unsupported with reference type ValueError where
// int() would.
[[nodiscard]] bool python_int_is_nonzero(std::string_view text);

}  // namespace mxfp4
