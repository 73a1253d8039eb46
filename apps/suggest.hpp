// "Did you mean": the known word nearest to one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// The candidate at the smallest edit distance from `word`, if at most a third of its letters (but
// two at least) differ; empty otherwise. Case does not count.
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace mxfp4
