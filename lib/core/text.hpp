// Text of unknown origin (file names, tensor names, JSON): its form in messages, and checks that
// refuse it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// The text for a message: as visible() shows it, cut after 200 bytes.
[[nodiscard]] std::string shown(std::string_view text);
// The same in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

// The number, 0 or more, that the whole text is; nullopt for any other text.
[[nodiscard]] std::optional<int64_t> whole_number(std::string_view text);

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Throws Error::input, naming the first byte that is not part of a well-formed UTF-8 sequence.
void check_utf8(std::string_view text);

// Throws Error::input unless the name is not empty, is UTF-8 and holds no control character.
void check_tensor_name(std::string_view name);

// "a", "a or b", "a, b or c".
[[nodiscard]] std::string alternatives(const std::vector<std::string>& words);

// Ascending numbers: "0-35" or "0-3, 7".
[[nodiscard]] std::string number_ranges(const std::vector<int64_t>& numbers);

// Throws Error::input "<what>: <value>, expected <choices>" unless it is one of them.
void check_choice(std::string_view what, std::string_view value,
                  std::initializer_list<std::string_view> choices);

}  // namespace mxfp4
