// JSON from untrusted files. Stricter than the parser below it: duplicate keys, NUL bytes, bytes
// that are not UTF-8 and deep nesting are errors, each with its own message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mxfp4 {

inline constexpr int kMaxJsonDepth = 64;

// The user's string for a message: control characters escaped, cut after 200 bytes.
[[nodiscard]] std::string shown(std::string_view text);
// The same in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Bytes of the well-formed UTF-8 sequence at the front of the text (Unicode 15, table 3-7); 0 if
// there is none.
[[nodiscard]] size_t utf8_sequence(std::string_view text);

// Throws Error::input unless the text is UTF-8 without NUL bytes (where the parser below would
// stop, whatever follows).
void check_json_text(std::string_view text);

// Throws Error::input unless the name is not empty and free of control characters.
void check_tensor_name(std::string_view name);

// Throws Error::input "<what>: <value>, expected <choice> or <choice>" unless it is one of them.
void check_choice(std::string_view what, std::string_view value,
                  std::initializer_list<std::string_view> choices);

// The whole text as one JSON value. Throws Error::input.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text);

}  // namespace mxfp4
