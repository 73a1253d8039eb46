// Text from files, names and command lines as it may be shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace mxfp4 {

// The text on one line that says what it says: what would move the cursor, change the terminal or
// the order of characters, or be invisible is escaped. "\x1b" for a byte that is a control character
// or no UTF-8, "\u202e" for C1 controls, bidirectional controls, line separators and characters
// without width. All other text stays as it is.
[[nodiscard]] std::string visible(std::string_view text);

}  // namespace mxfp4
