// Where a text stops being JSON, in words for the person who wrote it.
#pragma once

#include <string>
#include <string_view>

namespace mxfp4 {

// "line 3, column 5: expected ',' or '}', found '"x"'": the first violation of RFC 8259's grammar;
// without the line where the text has only one. A column counts characters from 1. Empty: there is
// none. The text is UTF-8; a byte order mark in front of it counts as nothing.
[[nodiscard]] std::string json_fault(std::string_view text);

}  // namespace mxfp4
