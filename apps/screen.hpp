// A command's document as text: what --json prints and what a person reads are one value. Members are
// called by their names, without what a number's name says for a program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"

namespace mxfp4 {

// A member's value in words: "1.50 GiB" of `data_bytes`, "0-35" of `layers`, "a, b" of a list, "tp 2, dp 1"
// of an object. Empty for null and for what is empty.
[[nodiscard]] std::string value_text(std::string_view member, const Json& value);

// A line for each member that is not empty, its value behind its name, or below it if it has lines of its
// own; all behind `indent` blanks. Lists of objects are tables, and left out.
[[nodiscard]] std::string fields_text(const Console& console, const Json& object,
                                      size_t indent = 0);

// A line for each object of `rows`, with these of its members. Lines that differ only in their first number
// are one.
[[nodiscard]] std::string table_text(const Console& console, const Json& rows,
                                     const std::vector<std::string>& members);

}  // namespace mxfp4
