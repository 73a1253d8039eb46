// "Did you mean": the known word nearest to one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/core/error.hpp"

namespace mxfp4 {

// The candidate at the smallest edit distance from `word`, if at most a third of its letters (but
// two at least) differ; empty otherwise. Case does not count.
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& candidates);

// Up to three candidates at the smallest distances, nearest first; none that is too far, as above.
[[nodiscard]] std::vector<std::string> nearest_words(std::string_view word,
                                                     const std::vector<std::string>& candidates);

// "did you mean X?"; without a near one `otherwise`, or "one of A, B, ..." where that is empty.
[[nodiscard]] std::string nearest_hint(std::string_view word,
                                       const std::vector<std::string>& candidates,
                                       std::string_view otherwise = "");

// "the nearest names: A, B; list <table> shows all"; without a near one, that the list shows them.
[[nodiscard]] std::string nearest_names_hint(std::string_view word,
                                             const std::vector<std::string>& candidates,
                                             std::string_view table);

// Error::usage "<flag>: unknown value '<value>'" with that hint.
[[nodiscard]] Error unknown_value(std::string_view flag, std::string_view value,
                                  const std::vector<std::string>& known);

}  // namespace mxfp4
