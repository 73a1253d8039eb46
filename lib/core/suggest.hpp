// "Did you mean": finds the known word nearest to an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/core/error.hpp"

namespace mxfp4 {

// The candidate nearest to `word`: one that begins with it, else the one at the smallest edit
// distance, which must be at most a third of the letters of `word`, two to four. Empty if there is none.
// Case does not count.
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& candidates);

// "did you mean X?"; if no candidate is near, `otherwise`, or if that is empty "one of A, B, ...".
[[nodiscard]] std::string nearest_hint(std::string_view word,
                                       const std::vector<std::string>& candidates,
                                       std::string_view otherwise = "");

// Error::usage "<flag>: unknown value '<value>'" with the hint of nearest_hint().
[[nodiscard]] Error unknown_value(std::string_view flag, std::string_view value,
                                  const std::vector<std::string>& known);

}  // namespace mxfp4
