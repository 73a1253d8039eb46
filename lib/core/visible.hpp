// Text from files, names and command lines as it may be shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace mxfp4 {

// The text as one line that is safe to print: characters that move the cursor, change the terminal
// or the order of others, or are invisible are escaped. "\x1b" for a byte that is a control
// character or not UTF-8, "\u202e" for C1 controls, bidirectional controls, line separators and
// characters without width. All other text stays as it is.
[[nodiscard]] std::string visible(std::string_view text);

}  // namespace mxfp4
