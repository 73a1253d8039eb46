// Reads JSON as an engine's Python does: the last of several equal keys in one object counts. Files
// of this program's own formats are read by strict_json.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mxfp4 {

// Throws Error::input for malformed text or nesting deeper than kMaxJsonDepth.
[[nodiscard]] nlohmann::json parse_python_json(std::string_view text);

// JSON as Python's json module writes it may hold Infinity, -Infinity and NaN, which are not JSON.
// This is the text with each of them as a string of this name, `mark` in front.
[[nodiscard]] std::string quote_python_constants(std::string_view text, std::string_view mark = "");
// The inverse, for JSON that was written with the mark.
[[nodiscard]] std::string unquote_python_constants(std::string text, std::string_view mark);

// A config's text, as parse_python_json() reads it, with the members in order and its constants as
// strings.
[[nodiscard]] nlohmann::ordered_json parse_python_config(std::string_view text,
                                                         std::string_view mark = "");

}  // namespace mxfp4
