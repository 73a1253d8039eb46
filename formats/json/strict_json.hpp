// JSON from untrusted files. Stricter than nlohmann's parser: duplicate keys, NUL bytes, bytes that
// are not UTF-8 and deep nesting are errors, each with its own message.
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "lib/core/error.hpp"

namespace mxfp4 {

inline constexpr int kMaxJsonDepth = 64;  // arrays and objects within each other

// Throws Error::input unless the text is UTF-8 without NUL bytes, at which the parser would stop
// without a word.
void check_json_text(std::string_view text);

// What Git leaves in place of a large file that was not fetched, if the text begins so.
[[nodiscard]] bool is_lfs_pointer(std::string_view begin);
inline constexpr const char* kLfsPointer = "a Git LFS pointer in place of the file";
inline constexpr const char* kFetchLfs =
    "run `git lfs pull` in its directory, or download it with `hf download`";

// The error for a text that the JSON parser refused with `error`: "not JSON: ", the place, and
// what was expected there.
[[nodiscard]] Error not_json(std::string_view text, const std::exception& error);

// The whole text as one JSON value, in time linear in its length (times the logarithm of the keys
// in one object). `last_counts`: the last of several equal keys is taken, as Python does, not
// refused. Throws Error::input.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text, bool last_counts = false);
// The same with the members of each object in the order of the text. Looking one up is linear.
[[nodiscard]] nlohmann::ordered_json parse_strict_ordered_json(std::string_view text,
                                                               bool last_counts = false);

}  // namespace mxfp4
