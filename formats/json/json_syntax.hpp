// Finds where a text stops being JSON, and words the error for the person who wrote it.
#pragma once

#include <string>
#include <string_view>

namespace mxfp4 {

// The first violation of RFC 8259's grammar: "line 3, column 5: expected ',' or '}', found 'x'",
// without the line if the text has only one; empty if there is no violation. Columns count
// characters from 1. `text` is UTF-8; a byte order mark at its start is skipped.
[[nodiscard]] std::string json_fault(std::string_view text);

}  // namespace mxfp4
