// Reads JSON as an engine's Python does: the last of several equal keys in one object counts. Files
// of this program's own formats are read by strict_json.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace mxfp4 {

// Throws Error::input for malformed text or nesting deeper than kMaxJsonDepth.
[[nodiscard]] nlohmann::json parse_python_json(std::string_view text);

// Python's name for the value's type: "str", "int", "list", ...
[[nodiscard]] std::string_view python_type_name(const nlohmann::json& value);

}  // namespace mxfp4
